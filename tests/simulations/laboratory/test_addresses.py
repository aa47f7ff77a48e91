import pytest

from common.errors import DataError
from server.spans import Span, marked
from simulations.laboratory.addresses import rows, write
from tests.support.marks import fit

XML = """<AddressCollection>
  <AddressString><AddressNumber>12</AddressNumber> <StreetName>Old</StreetName> <StreetName>Mill</StreetName>
    <StreetNamePostType>Rd.,</StreetNamePostType> <NotAddress>near</NotAddress> <PlaceName>Linn,</PlaceName>
    <PlaceName>Troy,</PlaceName> <StateName>IA</StateName></AddressString>
  <AddressString><PlaceName>,</PlaceName> <ZipCode>50309</ZipCode></AddressString>
  <AddressString><ZipCode>,</ZipCode> <ZipCode>50309</ZipCode></AddressString>
</AddressCollection>"""


def test_words_of_one_part_are_one_span_without_the_comma():
    whole = [(row["text"], tuple(Span(**span) for span in row["spans"])) for row in rows(XML)]
    assert all(fit(text, spans) for text, spans in whole)
    assert [marked(text, spans) for text, spans in whole] == [
        "<number>12</number> <street>Old Mill Rd</street>., near <place>Linn, Troy</place>, <state>IA</state>",
        ", <zip>50309</zip>",
    ]


def test_three_files_share_all_addresses_always_in_the_same_way(tmp_path):
    xml = "".join(f"<AddressString><ZipCode>{at}</ZipCode></AddressString>" for at in range(20))
    assert write(f"<a>{xml}</a>", tmp_path) == {"public": 4, "train": 10, "test": 6}
    files = [tmp_path / f"{name}.jsonl" for name in ("public", "train", "test")]
    texts = [file.read_text("utf-8") for file in files]
    assert len(set("".join(texts).splitlines())) == 20
    write(f"<a>{xml}</a>", tmp_path)
    assert texts == [file.read_text("utf-8") for file in files]


@pytest.mark.parametrize("xml", ["", "no xml", "<a></a>"])
def test_another_file_is_refused(xml):
    with pytest.raises(DataError, match=r"labeled\.xml"):
        rows(xml)
