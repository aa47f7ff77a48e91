import re
import xml.etree.ElementTree as ET

import pytest

from simulations.laboratory.benchmarks.parties import main

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("mode", ["semi_honest", "malicious"])
def test_a_small_federation_is_measured_by_part(mode, capsys):
    sizes = ["--parties", "3", "4", "--candidates", "40", "--dimensions", "32"]
    (growth,) = main([*sizes, "--modes", mode])
    _, *lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[:2] for line in lines] == [[mode, "3"], [mode, "4"]]
    for line in lines:
        _, cpu, *parts, kilobytes, _ = map(float, line[2:])
        assert sum(parts) == pytest.approx(cpu, abs=0.1)
        assert kilobytes > 40 * 32 * 4 / 1000
    assert growth.to == "3 parties"


def test_the_picture_has_what_was_printed(tmp_path, capsys):
    main(["--parties", "4", "3", "--candidates", "40", "--dimensions", "32", "--plot", str(tmp_path / "growth.svg")])
    heads, *lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    root = ET.fromstring((tmp_path / "growth.svg").read_text("utf-8"))
    (words,) = [element.text for element in root.iter(f"{SVG}desc")]
    for mode, printed in (("semi_honest", lines[0::2]), ("malicious", lines[1::2])):
        assert [line[:2] for line in printed] == [[mode, "3"], [mode, "4"]]
        (totals,) = re.findall(f"ms: {mode}, by .*?: all: (.*?);", words)
        (kilobytes,) = re.findall(rf"KB, by .* {mode}: (.*?)(?:;|\.$)", words.strip())
        for size, of_all, of_bytes, line in zip(
            (3, 4), totals.split(", "), kilobytes.split(", "), printed, strict=True
        ):
            assert float(of_all) * size / 1000 == pytest.approx(float(line[3]), abs=0.06)
            question = 40 * (32 + 1) * 4 / 1000  # vectors and labels
            assert float(of_bytes) + question == pytest.approx(float(line[-2]), abs=0.6)
    semi_honest = words.split("CPU time of one party")[1]
    assert [part for part in heads[-11:-4] if f"{part}: –, –" in semi_honest] == ["Agreement"]


def test_a_picture_of_one_size_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["--parties", "3", "--plot", str(tmp_path / "growth.svg")])
    assert "two numbers" in capsys.readouterr().err
