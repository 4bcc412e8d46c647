"""Image services behind an API: `openai` (GPT Image) and `gemini` (Nano Banana), through the vendors' own SDKs."""

from katha.renderers.hosted.gemini import GeminiRenderer
from katha.renderers.hosted.openai import OpenAIRenderer
from katha.renderers.hosted.service import Drawn, HostedRenderer, Service, load_service

__all__ = ["Drawn", "GeminiRenderer", "HostedRenderer", "OpenAIRenderer", "Service", "load_service"]
