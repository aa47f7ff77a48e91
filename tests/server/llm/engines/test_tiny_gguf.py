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


def test_both_engines_split_a_prompt_apply_the_chat_template_and_write_the_likeliest_text_alike(tmp_path):
    sys.modules["openvino_telemetry"] = None  # openvino reports its import to its maker unless this is missing
    import openvino_genai
    from transformers import AutoModelForCausalLM, AutoTokenizer

    file = tiny_gguf(tmp_path)
    scheduler, settings = openvino_genai.SchedulerConfig(), openvino_genai.GenerationConfig()
    scheduler.enable_prefix_caching, scheduler.cache_size = True, 1
    settings.apply_chat_template, settings.max_new_tokens, settings.do_sample = False, 16, False
    pipeline = openvino_genai.ContinuousBatchingPipeline(str(file), scheduler, "CPU", EXACT)
    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    model = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name)

    ids = pipeline.get_tokenizer().encode(PROMPT).input_ids.data[0].tolist()
    assert ids == tokenizer(PROMPT).input_ids
    assert len(ids) < len(PROMPT)
    talk = tokenizer.apply_chat_template(TALK, tokenize=False, add_generation_prompt=True)
    assert pipeline.get_tokenizer().apply_chat_template(TALK, add_generation_prompt=True) == talk
    encoded = tokenizer(PROMPT, return_tensors="pt")
    tokens = model.generate(**encoded, max_new_tokens=16, do_sample=False)[0, encoded.input_ids.shape[1] :]
    text = pipeline.generate([PROMPT], [settings])[0].m_generation_ids[0]
    assert text == tokenizer.decode(tokens, skip_special_tokens=True)
    assert len(set(text.split())) > 4
