"""Every language model of transformers, tiny and with random weights: it trains a step, is saved,
loaded and generates, or an error names it before the first step.
"""

import pytest
import torch
import torch_models as tiny
import transformers
from transformers.models.auto import modeling_auto as auto

from numtok import Tokenizer
from numtok_torch import (
    ModelError,
    NumberCollator,
    NumberDataset,
    NumberModel,
    ScalarHead,
    Seq2SeqNumberCollator,
    embedding_from_schema,
    generate,
)

TEXTS = ["It is 3.5 m and -2.", "Pay 17 now, 4 later 99."]
SIZES = {
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "hidden_dim", "dim", "emb_dim"), 32),
    **dict.fromkeys(("embedding_size", "word_embed_proj_dim"), 32),
    **dict.fromkeys(("input_embedding_size", "output_embedding_size"), 32),
    **dict.fromkeys(("intermediate_size", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim"), 32),
    **dict.fromkeys(("d_ff", "d_inner", "ffn_hidden_size", "attention_hidden_size"), 32),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers"), 2),
    **dict.fromkeys(("encoder_layers", "decoder_layers", "num_decoder_layers"), 2),
    **dict.fromkeys(("num_attention_heads", "num_key_value_heads", "n_head", "n_heads"), 4),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads", "num_heads"), 4),
    **dict.fromkeys(("max_position_embeddings", "n_positions"), 128),
    **dict.fromkeys(("head_dim", "d_head", "d_kv", "qk_rope_head_dim", "qk_nope_head_dim"), 8),
    **dict.fromkeys(("v_head_dim", "state_size"), 8),
    **dict.fromkeys(("moe_intermediate_size", "shared_expert_intermediate_size"), 16),
    **dict.fromkeys(("q_lora_rank", "kv_lora_rank", "qk_head_dim", "sliding_window"), 16),
    **dict.fromkeys(("num_experts", "n_routed_experts", "num_local_experts", "rotary_dim"), 4),
    **dict.fromkeys(("n_group", "topk_group"), 1),
    "num_experts_per_tok": 2,
}
LAYERS = {"layer_types": ["linear_attention", "full_attention"]}
FULL = {"layer_types": ["full_attention"] * 2}
MAMBA = {"mamba_n_heads": 8, "mamba_d_head": 8, "mamba_d_state": 8, "mamba_d_ssm": 64}
GEMMA = {"vocab_size_per_layer_input": 1000, "hidden_size_per_layer_input": 4}
SLIDING = {"layer_types": ["sliding_attention", "full_attention"]}
OWN = {  # what the sizes above do not make fit, by kind of config
    "bamba": MAMBA | {"attn_layer_indices": [1]},
    "dbrx": {
        "attn_config": {"kv_n_heads": 4, "rope_theta": 1e4, "clip_qkv": 8.0},
        "ffn_config": {"ffn_hidden_size": 16, "moe_num_experts": 4, "moe_top_k": 2},
    },
    "deepseek_v2": {"num_experts_per_tok": 2, "topk_method": "greedy"},
    "dots1": {"n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2},
    "falcon_h1": MAMBA,
    "gemma3n_text": {
        **(GEMMA | SLIDING),
        "num_kv_shared_layers": 0,
        "activation_sparsity_pattern": [0.0, 0.0],
        "intermediate_size": [32, 32],
    },
    "gemma4_text": GEMMA | SLIDING | {"global_head_dim": 8},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},
    "granitemoehybrid": MAMBA | LAYERS | {"shared_intermediate_size": 32},
    "hunyuan_v1_dense": {"head_dim": 8},
    "hunyuan_v1_moe": {"head_dim": 8, "num_experts": 1, "moe_topk": 1},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1, "mamba_dt_rank": 4},
    "lfm2_moe": FULL,
    "lfm3": {"layer_types": ["conv", "full_attention"]},
    "mamba2": {"n_groups": 2, "num_heads": 8},
    "ministral": {"head_dim": 8},
    "nemotron": {"num_key_value_heads": 2},
    "qwen3_5_moe_text": LAYERS,
    "qwen3_5_text": LAYERS,
    "qwen3_next": LAYERS,
    "recurrent_gemma": {"num_hidden_layers": 3},
    "reformer": {
        "is_decoder": True,
        "axial_pos_embds": False,
        "attention_head_size": 8,
        "attn_layers": ["local", "local"],
    },
    "xmod": {"default_language": "en_XX"},
    "zaya": {"num_experts_per_tok": 1},
}
NOT_TINY = {  # made of other models, or without a small config that runs in transformers itself
    "BailingHybridForCausalLM",
    "BltForCausalLM",
    "CohereCompassForCausalLM",
    "Dots3NoteForCausalLM",
    "EncoderDecoderModel",
    "Gemma4AssistantForCausalLM",
    "Gemma4UnifiedAssistantForCausalLM",
    "KimiLinearForCausalLM",
    "LongcatFlashForCausalLM",
    "LukeForMaskedLM",
    "MiMoV2FlashForCausalLM",
    "NeoMMEForMaskedLM",
    "PerceiverForMaskedLM",
    "Qwen4ExpForCausalLM",
    "ReformerForMaskedLM",
    "RoCBertForCausalLM",
    "RoCBertForMaskedLM",
    "Zamba2ForCausalLM",
    "ZambaForCausalLM",
}
SEES_OR_HEARS = {  # beside those of the tasks below
    "AudioFlamingo3ForConditionalGeneration",
    "ModernVBertForMaskedLM",
    "MoshiForCausalLM",
    "MusicFlamingoForConditionalGeneration",
    "UltraVBertForMaskedLM",
}
NO_GENERATE = {"ProphetNet", "xLSTM"}  # on which transformers' own generate fails
REFUSED = {
    "CpmAntForCausalLM": "takes no inputs_embeds",
    "DeepseekV4ForCausalLM": "look up the ids",
    "EsmForMaskedLM": "how many ids are masked",
    "EsmcForMaskedLM": "takes no inputs_embeds",
    "FSMTForConditionalGeneration": "get_input_embeddings",
    "Gemma3nForCausalLM": "look up the ids",
    "Gemma4ForCausalLM": "look up the ids",
    "IBertForMaskedLM": "QuantEmbedding",
    **dict.fromkeys(
        ("MraForMaskedLM", "NystromformerForMaskedLM", "YosoForMaskedLM"), "positions begin at 2"
    ),
    "MusicgenForCausalLM": "ModuleList",
    "MusicgenMelodyForCausalLM": "ModuleList",
    "ReformerModelWithLMHead": "two streams",
}


def classes():
    """Return the names of the language models, but for those with a part that sees or hears.

    The classes themselves are not imported before a test takes one: all of them take 3 seconds.
    """
    text = names_of("CAUSAL_LM", "MASKED_LM", "SEQ_TO_SEQ_CAUSAL_LM")
    other = names_of("IMAGE_TEXT_TO_TEXT", "MULTIMODAL_LM", "SPEECH_SEQ_2_SEQ")
    return [name for name in text if name not in {*NOT_TINY, *SEES_OR_HEARS, *other}]


def names_of(*tasks):
    names = {}
    for task in tasks:
        for name in getattr(auto, f"MODEL_FOR_{task}_MAPPING_NAMES").values():
            names |= dict.fromkeys([name] if isinstance(name, str) else name)
    return names


def config_of(kind, vocab):
    def make(config):
        defaults = config().to_dict()
        own = {key: size for key, size in SIZES.items() if defaults.get(key) is not None}
        own |= {
            key: 1
            for key, value in defaults.items()
            if key.endswith("token_id") and isinstance(value, (int, list))
        }
        own |= dict.fromkeys(defaults.keys() & {"vocab_size", "decoder_vocab_size"}, vocab)
        own |= dict.fromkeys(defaults.keys() & {"src_vocab_size", "tgt_vocab_size"}, vocab)
        if defaults.get("is_encoder_decoder"):
            own["decoder_start_token_id"] = 1
        if kind.__name__ in auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values():
            own |= dict.fromkeys(defaults.keys() & {"is_decoder"}, True)
        parts = getattr(config, "sub_configs", None) or {}
        own |= {
            part: make(sub).to_dict() for part, sub in parts.items() if hasattr(sub, "model_type")
        }
        return config(**(own | OWN.get(config.model_type, {})))

    return make(kind.config_class)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", classes())
def test_a_language_model_trains_is_saved_loaded_and_generates(name, tmp_path):
    kind = getattr(transformers, name)
    tokenizer = Tokenizer.from_pretrained(numbers=["xval"])
    rows = tokenizer.encode_batch(TEXTS)
    torch.manual_seed(0)
    if name in REFUSED:
        with pytest.raises(ModelError, match=REFUSED[name]):
            NumberModel(_made(kind, 1000), None)
        return
    backbone = _made(kind, 1000)
    words = (backbone.get_encoder() if "Conditional" in name else backbone).get_input_embeddings()
    d = words.weight.shape[1]
    embedding = embedding_from_schema(rows.schema, d)
    head = ScalarHead(getattr(backbone.config, "hidden_size", d))
    try:
        model = NumberModel(backbone, embedding, head, vocab_size=tokenizer.vocab_size)
    except ModelError as error:  # as the error says, with the rows in its config
        assert f"vocab_size={tokenizer.vocab_size}" in str(error)
        model = NumberModel(_made(kind, tokenizer.vocab_size), embedding, head)
    batch = _batch(model, rows)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loss = model.train()(**batch).loss
    loss.backward()
    optimizer.step()
    assert torch.isfinite(loss)
    with torch.no_grad():
        logits = model.eval()(**batch).logits
        if model.causal:
            other = batch | {"input_ids": batch["input_ids"].index_fill(1, torch.tensor(5), 77)}
            tiny.same(model(**other).logits[:, :5], logits[:, :5], atol=1e-5)
        model.save_pretrained(tmp_path)
        loaded = NumberModel.from_pretrained(tmp_path)
        tiny.same(loaded(**batch).logits, logits, atol=1e-4)
    if backbone.can_generate() and (model.causal or model.decodes):
        if not name.startswith(tuple(NO_GENERATE)):
            assert len(generate(loaded, tokenizer, TEXTS, max_new_tokens=3)) == 2
    else:
        with pytest.raises(ModelError, match="cannot generate"):
            generate(loaded, tokenizer, TEXTS)


def _made(kind, vocab):
    config = config_of(kind, vocab)
    with torch.device("meta"):
        assert sum(part.numel() for part in kind(config).parameters()) < 3e6
    return kind(config)


def _batch(model, rows):
    data = NumberDataset(rows)
    if model.decodes:
        collate = Seq2SeqNumberCollator.from_schema(rows.schema, 0)
        return collate([(data[0], data[1]), (data[1], data[0])])
    batch = NumberCollator.from_schema(rows.schema, 0, objective=None)([data[0], data[1]])
    return batch | {"labels": batch["input_ids"]}
