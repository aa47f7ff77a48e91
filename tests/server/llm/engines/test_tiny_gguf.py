"""The tiny GGUF file is one model to every engine: the same tokens, the same chat template, the same text."""

import sys

import pytest

from tests.support.tiny_gguf import tiny_gguf

pytestmark = pytest.mark.openvino

PROMPT = "Message: my card is lost\nMessage:"
TALK = [{"role": "user", "content": "my card"}]
EXACT = {
    "INFERENCE_PRECISION_HINT": "f32",
    "KV_CACHE_PRECISION": "f32",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
    "INFERENCE_NUM_THREADS": 1,
}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return tiny_gguf(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def pipeline(file):
    sys.modules["openvino_telemetry"] = None  # openvino reports its import to its maker unless this is missing
    import openvino_genai

    scheduler = openvino_genai.SchedulerConfig()
    scheduler.enable_prefix_caching = True
    scheduler.cache_size = 1
    return openvino_genai.ContinuousBatchingPipeline(str(file), scheduler, "CPU", EXACT)


@pytest.fixture(scope="module")
def read(file):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    return tokenizer, AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name)


def settings(**set_to):
    import openvino_genai

    made = openvino_genai.GenerationConfig()
    made.apply_chat_template, made.max_new_tokens = False, 16
    for name, value in set_to.items():
        setattr(made, name, value)
    return made


def test_both_engines_split_a_prompt_alike(pipeline, read):
    ids = pipeline.get_tokenizer().encode(PROMPT).input_ids.data[0].tolist()
    assert ids == read[0](PROMPT).input_ids
    assert len(ids) < len(PROMPT)


def test_both_engines_have_the_chat_template(pipeline, read):
    text = read[0].apply_chat_template(TALK, tokenize=False, add_generation_prompt=True)
    assert text == "<|im_start|>user\nmy card<|im_end|>\n<|im_start|>assistant\n"
    assert pipeline.get_tokenizer().apply_chat_template(TALK, add_generation_prompt=True) == text


def test_both_engines_write_the_same_likeliest_text(pipeline, read):
    tokenizer, model = read
    encoded = tokenizer(PROMPT, return_tensors="pt")
    tokens = model.generate(**encoded, max_new_tokens=16, do_sample=False)[0, encoded.input_ids.shape[1] :]
    text = pipeline.generate([PROMPT], [settings(do_sample=False)])[0].m_generation_ids[0]
    assert text == tokenizer.decode(tokens, skip_special_tokens=True)
    assert len(set(text.split())) > 4


def test_sampled_texts_follow_prompt_and_seed_and_stop_at_a_line_end(pipeline):
    def texts(prompt):
        sampled = [
            settings(do_sample=True, temperature=0.8, top_p=0.95, top_k=2**31, rng_seed=seed, stop_strings={"\n"})
            for seed in range(12)
        ]
        return [result.m_generation_ids[0] for result in pipeline.generate([prompt] * 12, sampled)]

    first = texts(PROMPT)
    assert first == texts(PROMPT) != texts("Note: fever and cough\nNote:")
    assert len(set(first)) > 6
    assert "\n" not in "".join(text[:-1] for text in first)


def test_a_seed_gives_the_same_file(tmp_path):
    files = [tiny_gguf(tmp_path / str(at), seed=seed).read_bytes() for at, seed in enumerate((3, 3, 4))]
    assert files[0] == files[1] != files[2]
