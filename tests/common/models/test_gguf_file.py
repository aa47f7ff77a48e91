"""One GGUF file is a whole model, and one that is damaged or of another kind is refused by its header."""

import struct

import gguf
import numpy as np
import pytest

from common.errors import ConfigError
from common.models import checkpoints, gguf_file
from tests.support.tiny_gguf import TEMPLATE, tiny_gguf


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return tiny_gguf(tmp_path_factory.mktemp("gguf"))


@pytest.fixture
def written(tmp_path):
    """Write a file of one weight with a header of one's choice."""

    def write(architecture="llama", *, context=64, shape=(4, 32), kind=gguf.GGMLQuantizationType.F32, **numbers):
        at = tmp_path / "written.gguf"
        writer = gguf.GGUFWriter(at, architecture)
        if context is not None:
            writer.add_context_length(context)
        for name, value in numbers.items():
            writer.add_uint32(name, value)
        size = gguf.GGML_QUANT_SIZES[kind][1] * shape[0] * shape[1] // gguf.GGML_QUANT_SIZES[kind][0]
        writer.add_tensor_info("w", shape, np.dtype("float32"), size, raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        writer.close()
        with at.open("ab") as weights:
            weights.write(bytes(size + 64))
        return at

    return write


@pytest.mark.parametrize(("number", "name"), gguf_file._TYPES.items())
def test_types_of_weights_are_those_of_the_format(number, name):
    assert gguf.GGMLQuantizationType(number).name == name


def test_configuration_and_tokenizer_come_from_the_file_alone(file):
    from transformers import AutoTokenizer

    config = checkpoints.configuration(file, "causal")
    assert (config.is_encoder_decoder, config.get_text_config().max_position_embeddings) == (False, 1024)
    tokenizer = checkpoints.tokenizer(file)
    slow = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    text = "<|im_start|>user\nfever 38.5  naïve<|im_end|>"
    assert tokenizer(text).input_ids == slow(text).input_ids
    assert tokenizer.chat_template == TEMPLATE
    assert tokenizer.eos_token == "<|im_end|>"


def test_a_file_is_found_by_its_path_and_alone_in_a_folder(file, tmp_path):
    assert gguf_file.find_gguf_file(file) == gguf_file.find_gguf_file(file.parent) == file
    assert gguf_file.find_gguf_file(tmp_path) is None
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(ConfigError, match=r"^GGUF file;.* 2;"):
        gguf_file.find_gguf_file(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    assert gguf_file.find_gguf_file(tmp_path) is None
    with pytest.raises(ConfigError, match=r"^GGUF file;.*c\.gguf"):
        gguf_file.find_gguf_file(tmp_path / "c.gguf")


def test_a_digest_is_of_the_file_and_of_nothing_beside_it(file, tmp_path):
    digest = checkpoints.digest(file)
    copy = tmp_path / file.name
    copy.write_bytes(file.read_bytes())
    (tmp_path / "other.gguf").write_bytes(b"other")
    assert checkpoints.digest(copy) == digest
    with copy.open("r+b") as opened:
        opened.seek(-1, 2)
        opened.write(b"x")
    assert checkpoints.digest(copy) != digest


def test_a_file_that_is_cut_off_anywhere_is_refused(file, tmp_path):
    whole = file.read_bytes()
    cut = tmp_path / "cut.gguf"
    for length in [*range(0, 400, 7), *range(400, len(whole), len(whole) // 40), len(whole) - 33]:
        cut.write_bytes(whole[:length])
        assert refused(cut)
    assert f"{cut.stat().st_size:,} bytes" in refused(cut)


@pytest.mark.parametrize("number", [0, 2**32 - 1, 2**60, 2**63 - 1, 2**64 - 1])
def test_a_header_of_absurd_numbers_is_one_error(number, file, tmp_path):
    beginning = file.read_bytes()[:600]
    harmed = tmp_path / "harmed.gguf"
    for at in range(4, 600):
        harmed.write_bytes(beginning[:at] + struct.pack("<Q", number) + beginning[at + 8 :])
        assert refused(harmed)


@pytest.mark.parametrize("elements", range(13))
def test_an_array_longer_than_its_file_is_refused(elements, tmp_path):
    harmed = tmp_path / "harmed.gguf"
    for count in {2**power - less for power in range(1, 65) for less in (0, 1) if 2**power - less < 2**64}:
        harmed.write_bytes(b"GGUF" + struct.pack("<IQQQcIIQ", 3, 0, 1, 1, b"x", 9, elements, count))
        assert refused(harmed)


@pytest.mark.parametrize(
    ("header", "got"),
    [
        ({"architecture": "gemma3"}, "gemma3"),
        ({"kind": gguf.GGMLQuantizationType.BF16}, "type 30"),
        ({"kind": gguf.GGMLQuantizationType.Q5_0}, "type 6"),
        ({"context": None}, "KeyError"),
        ({"context": 0}, "0 tokens"),
        ({"general.alignment": 0}, "ZeroDivisionError"),
    ],
)
def test_another_kind_of_file_is_refused_with_what_it_has(header, got, written):
    assert got in refused(written(**header))


def refused(file):
    """Return what the refusal of a file says that it got."""
    with pytest.raises(ConfigError) as refusal:
        gguf_file.read_configuration(file)
    assert (refusal.value.what, refusal.value.where) == ("GGUF file", file)
    return str(refusal.value.got)
