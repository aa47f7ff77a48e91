"""The endpoints: models, and chat completions without streaming. Bodies and errors have OpenAI's form.

No body that a client sends is logged or kept. There is no key: anyone who can reach the address may use the model.
"""

import asyncio
import json
import time
import uuid
from http import HTTPStatus
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from common.errors import ConfigError
from server.llm.engines.base import Job
from server.llm.serve.body import read_body
from server.llm.serve.model import ChatModel

_LEFT = 499  # a client that has gone reads no status


class RefusalError(HTTPException):
    """Error that is the response to a request.

    Args:
        status: HTTP status.
        message: What is wrong, for the client.
        param: Name of the wrong field; None if it is none.
        code: OpenAI's code for it; None if there is none.
    """

    def __init__(self, status: int, message: str, *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(status, message)
        self.param, self.code = param, code


def application(model: ChatModel) -> Starlette:
    """Return the server of one model as an ASGI application."""
    card = {"id": model.name, "object": "model", "created": int(time.time()), "owned_by": "caucus"}

    async def models(_: Request) -> Response:
        return JSONResponse({"object": "list", "data": [card]})

    async def one_model(request: Request) -> Response:
        _check_name(request.path_params["name"], model)
        return JSONResponse(card)

    async def complete(request: Request) -> Response:
        job = read_job(await request.body(), model)
        reply = asyncio.wrap_future(model.submit(job))
        left = asyncio.ensure_future(request.receive())  # after a whole body, nothing comes but the client's leaving
        either: list[asyncio.Future[Any]] = [reply, left]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        left.cancel()
        if not reply.done():
            reply.cancel()
            return Response(status_code=_LEFT)
        if failure := reply.exception():
            raise RefusalError(HTTPStatus.INTERNAL_SERVER_ERROR, f"the engine fails: {type(failure).__name__}")
        return JSONResponse(_completion(model, job, reply.result()))

    routes = [
        Route("/v1/models", models),
        Route("/v1/models/{name:path}", one_model),
        Route("/v1/chat/completions", complete, methods=["POST"]),
    ]
    return Starlette(routes=routes, exception_handlers={HTTPException: _refusal, ConfigError: _wrong_field})


def read_job(content: bytes, model: ChatModel) -> Job:
    """Return the engine's job for the content of a request.

    Raises:
        ConfigError: A field is wrong (`read_body`).
        RefusalError: It is not JSON, is for another model, or does not fit into the model's context.
    """
    try:
        body = read_body(json.loads(content))
    except (ValueError, RecursionError) as error:
        raise RefusalError(HTTPStatus.BAD_REQUEST, "the body is not JSON", param="body") from error
    _check_name(body.model, model)
    longest = model.longest_prompt(body.max_tokens)
    if longest < 1:
        message = f"{body.length_field} is {body.max_tokens}, of {model.context} tokens for prompt and answer"
        raise RefusalError(HTTPStatus.BAD_REQUEST, message, param=body.length_field)
    job = model.job(body)
    if len(job.ids) > longest:
        message = (
            f"the prompt is too long: it has {len(job.ids)} tokens, and the context length of {model.context} leaves "
            f"{longest} before an answer of {body.max_tokens}"
        )
        raise RefusalError(HTTPStatus.BAD_REQUEST, message, param="messages", code="context_length_exceeded")
    return job


def _check_name(name: str, model: ChatModel) -> None:
    if name != model.name:
        message = f"the model {name!r} is not here, but {model.name}"
        raise RefusalError(HTTPStatus.NOT_FOUND, message, param="model", code="model_not_found")


def _completion(model: ChatModel, job: Job, ids: list[int]) -> dict[str, Any]:
    text, reason = model.answer(job, ids)
    message = {"role": "assistant", "content": text, "refusal": None}
    read, written = len(job.ids), len(ids)
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model.name,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": reason}],
        "usage": {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written},
    }


async def _wrong_field(request: Request, error: Exception) -> Response:
    assert isinstance(error, ConfigError)
    return await _refusal(request, RefusalError(HTTPStatus.BAD_REQUEST, str(error), param=str(error.what)))


async def _refusal(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status, param, code = error.status_code, getattr(error, "param", None), getattr(error, "code", None)
    kind = "invalid_request_error" if status < HTTPStatus.INTERNAL_SERVER_ERROR else "server_error"
    return JSONResponse({"error": {"message": error.detail, "type": kind, "param": param, "code": code}}, status)
