"""check_docs.py ROOT [--write]: holds the pages to what they show.

A code block under a comment that names a file, <!-- examples/minimal/minimal.cpp -->, is that whole file; under
<!-- part of FILE --> it is a stretch of it, whatever its indentation. --write copies whole files anew. Links to
files of the repository must lead somewhere.
"""

import pathlib
import re
import sys
import textwrap

BLOCK = re.compile(r"<!-- (part of )?(\S+) -->\n(```\w+\n)(.*?)(```)\n", re.DOTALL)
LINK = re.compile(r"\]\(([^)#:\s]+)(#[^)]*)?\)")


def lines_of(text):
    return [line.strip() for line in text.strip().splitlines()]


def contains(whole, part):
    return any(whole[i : i + len(part)] == part for i in range(len(whole) - len(part) + 1))


def main():
    root = pathlib.Path(sys.argv[1])
    writes = "--write" in sys.argv
    problems = []
    blocks = 0
    for page in sorted([*root.glob("*.md"), *root.glob("docs/*.md")]):

        def checked(match):
            nonlocal blocks
            blocks += 1
            is_part, path, fence, shown, end = match.groups()
            if not (root / path).exists():
                problems.append(f"{page.name}: no file {path}")
                return match[0]
            text = (root / path).read_text()
            if is_part and not contains(lines_of(text), lines_of(textwrap.dedent(shown))):
                problems.append(f"{page.name}: this is not in {path}:\n{shown}")
            elif not is_part and shown != text:
                problems.append(f"{page.name}: not the text of {path}; check_docs.py --write copies it")
            return match[0] if is_part else f"<!-- {path} -->\n{fence}{text}{end}\n"

        text = page.read_text()
        renewed = BLOCK.sub(checked, text)
        if writes:
            page.write_text(renewed)
        for link, _ in LINK.findall(re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
            if not (page.parent / link).exists():
                problems.append(f"{page.name}: nothing at {link}")
    print(f"{blocks} blocks of code compared")
    sys.exit("\n".join(problems) if problems and not writes else 0)


main()
