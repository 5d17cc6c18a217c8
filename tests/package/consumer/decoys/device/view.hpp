#error "a header of the user was taken for one of sifr"
