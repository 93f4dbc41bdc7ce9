"""Reads a pack of QR codes as others do: the archive with Python's zipfile, and the sheets with the PDF
engine of Chromium, whose picture of each page the reader ZXing looks for codes in.

    python read_pack.py FILE

Prints JSON: for an archive its `files` and the rows of its `table`; for sheets the `pages`, each with its
`text` and the texts of its `codes`, sorted.
"""

import csv
import io
import json
import sys
import zipfile


def archive(path: str) -> dict:
    with zipfile.ZipFile(path) as file:
        broken = file.testzip()
        if broken is not None:
            sys.exit(f"{broken} is damaged")
        files = {name: file.read(name).decode("utf-8", "replace") for name in file.namelist()}
    return {"files": files, "table": list(csv.DictReader(io.StringIO(files["links.csv"])))}


def sheets(path: str) -> dict:
    import pypdfium2
    import zxingcpp

    pages = []
    for page in pypdfium2.PdfDocument(path):
        width, height = page.get_size()
        if (round(width), round(height)) != (595, 842):
            sys.exit(f"a page has {width} x {height} points")
        # 300 dots on an inch.
        picture = page.render(scale=300 / 72, grayscale=True)
        pixels = memoryview(picture.buffer).cast("B", (picture.height, picture.stride))
        codes = sorted(code.text for code in zxingcpp.read_barcodes(pixels))
        pages.append({"text": page.get_textpage().get_text_range(), "codes": codes})
    return {"pages": pages}


with open(sys.argv[1], "rb") as pack:
    is_archive = pack.read(2) == b"PK"
print(json.dumps((archive if is_archive else sheets)(sys.argv[1])))
