"""What the service says of itself, as OpenAPI has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drift import __version__

if TYPE_CHECKING:
    from drift.consumers.options import ServiceOptions

__all__ = ["openapi"]

_SCALAR = {"type": ["string", "number", "boolean", "null"]}


def openapi(topic: str, options: ServiceOptions) -> dict[str, Any]:
    """Return the document of a service.

    Parameters
    ----------
    topic
        Whose messages the model learns.
    options
        The bounds of what is asked.

    Examples
    --------
    >>> from drift.consumers.options import ServiceOptions
    >>> sorted(openapi("orders", ServiceOptions())["paths"])
    ['/healthz', '/livez', '/metrics', '/openapi.json', '/predict', '/readyz']
    """
    refused = {
        400: "What cannot be predicted; `error` names the culprit.",
        403: "The name in Host is not one of the service.",
        408: f"The body took longer than {options.timeout:g} s.",
        413: "The body, or the list, is too long.",
        415: "The Content-Type is not application/json.",
        503: "There is no model yet, or it is too far behind the logs.",
    }
    predict = {
        "summary": "Predict one example, or a list of them",
        "requestBody": {
            "required": True,
            "description": f"What a message on the topic {topic} is; its label is not looked at.",
            "content": {"application/json": {"schema": _ref("Question")}},
        },
        "responses": {
            "200": _json("What the model predicts.", "Answer"),
            **{str(code): _json(text, "Refusal") for code, text in refused.items()},
        },
    }
    texts = {
        "/healthz": ("Whether the process works", [200, 503]),
        "/livez": ("The same", [200, 503]),
        "/readyz": ("Whether the model has caught up with the logs", [200, 503]),
        "/metrics": ("Metrics, as Prometheus reads them", [200]),
        "/openapi.json": ("This document", [200]),
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": f"Predictions of {topic}", "version": __version__},
        "paths": {
            "/predict": {"post": predict},
            **{
                path: {
                    "get": {
                        "summary": summary,
                        "responses": {
                            str(code): {"description": "yes" if code == 200 else "no, and why"}
                            for code in codes
                        },
                    }
                }
                for path, (summary, codes) in texts.items()
            },
        },
        "components": {"schemas": _schemas(options)},
    }


def _schemas(options: ServiceOptions) -> dict[str, Any]:
    question = {
        "type": "object",
        "examples": [{"features": {"sum": 31.5, "card=visa": 1}, "id": "a7"}],
    }
    predicted = {
        "id": {**_SCALAR, "description": "The example's own."},
        "predicted": {**_SCALAR, "description": "The label; null where nothing was learnt."},
        "score": {"description": "Of models that have one; else null."},
        "probabilities": {
            "type": ["object", "null"],
            "description": "By the label's text; null of models that know none.",
            "additionalProperties": {"type": ["number", "null"]},
        },
    }
    always = list(predicted)
    predicted |= {
        "threshold": {
            "type": "number",
            "description": "With [decision]: the probability that `positive` is predicted from.",
        },
        "explanation": {
            "type": ["object", "null"],
            "description": "With [answers] explain: the largest contributions to the log-odds.",
            "additionalProperties": {"type": "number"},
        },
    }
    prediction = {"type": "object", "required": always, "properties": predicted}
    model = {
        "type": "object",
        "required": ["checkpoint", "offsets", "staleness_seconds"],
        "properties": {
            "checkpoint": {
                "type": ["string", "null"],
                "description": "Which the model comes from; null before the first.",
            },
            "offsets": {
                "type": "object",
                "description": "The next to be learnt, by topic and partition.",
                "additionalProperties": {
                    "type": "object",
                    "additionalProperties": {"type": "integer"},
                },
            },
            "staleness_seconds": {
                "type": ["number", "null"],
                "description": "Since all was learnt that there was; null until then.",
            },
        },
    }
    of_one = {
        **prediction,
        "required": [*always, "model"],
        "properties": {**predicted, "model": _ref("Model")},
    }
    of_list = {
        "type": "object",
        "required": ["predictions", "model"],
        "properties": {
            "predictions": {"type": "array", "items": _ref("Prediction")},
            "model": _ref("Model"),
        },
    }
    many = {"type": "array", "maxItems": options.max_examples, "items": question}
    error = {"error": {"type": "string"}, "model": _ref("Model")}
    return {
        "Question": {"oneOf": [question, many]},
        "Answer": {"oneOf": [of_one, of_list]},
        "Prediction": prediction,
        "Model": model,
        "Refusal": {"type": "object", "required": ["error"], "properties": error},
    }


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _json(description: str, name: str) -> dict[str, Any]:
    return {
        "description": description,
        "content": {"application/json": {"schema": _ref(name)}},
    }
