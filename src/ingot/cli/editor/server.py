"""serve: the language server over standard input and output, by pygls.

In: what an editor sends. Out: answers of answers.py and problems, in the units of the protocol.
"""

import asyncio
import functools
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lsprotocol import types as lsp
from pygls import uris
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

from ingot import __version__
from ingot.cli.editor.answers import complete, define, describe
from ingot.cli.editor.outlined import Place, WrittenBlock, outline_text
from ingot.cli.editor.problems import Finding, find_problems
from ingot.cli.editor.types_of_blocks import known_types
from ingot.errors import IngotError
from ingot.hit.source import Source, read_contents

__all__ = ["make_server"]

DEBOUNCE = 0.3  # seconds without a letter before a text is looked at: a pause between words
KINDS = {
    "section": lsp.CompletionItemKind.Module,
    "type": lsp.CompletionItemKind.Class,
    "option": lsp.CompletionItemKind.Property,
    "choice": lsp.CompletionItemKind.EnumMember,
    "block": lsp.CompletionItemKind.Reference,
    "variable": lsp.CompletionItemKind.Variable,
    "value": lsp.CompletionItemKind.Value,
}
SEVERITIES = {
    "error": lsp.DiagnosticSeverity.Error,
    "warning": lsp.DiagnosticSeverity.Warning,
    "information": lsp.DiagnosticSeverity.Information,
}


class Diagnosing:
    """Looks at each text a while after it was last changed, one at a time, beside the server."""

    def __init__(self, server: LanguageServer) -> None:
        self.server = server
        self.worker = ThreadPoolExecutor(1)
        self.waiting: dict[str, asyncio.Task[None]] = {}

    def schedule(self, uri: str, delay: float) -> None:
        """Look at a text after a while, unless it changes before."""
        if uri in self.waiting:
            self.waiting[uri].cancel()
        self.waiting[uri] = asyncio.get_running_loop().create_task(self.look(uri, delay))

    async def look(self, uri: str, delay: float) -> None:
        """Look at a text, and tell the editor what is wrong with it as it was then."""
        await asyncio.sleep(delay)
        document = self.server.workspace.get_text_document(uri)
        version, text, file = document.version, document.source, path_of(document)
        work = functools.partial(find_safely, text, file)
        found = await asyncio.get_running_loop().run_in_executor(self.worker, work)
        items = [diagnostic(each, text, file, document) for each in found]
        self.server.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(uri=uri, diagnostics=items, version=version)
        )

    def forget(self, uri: str) -> None:
        """Nothing is wrong with a text that was closed."""
        task = self.waiting.pop(uri, None)
        if task is not None:
            task.cancel()
        self.server.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(uri=uri, diagnostics=[])
        )


def find_safely(text: str, file: Path) -> list[Finding]:
    """The problems of a text; a fault of ours is logged, and the server goes on."""
    try:
        return find_problems(text, file)
    except Exception:
        logging.getLogger("ingot").exception("looking at %s failed", file)
        return []


def make_server() -> LanguageServer:
    """A server that knows input files, ready to be started."""
    server = LanguageServer("ingot", __version__)
    diagnosing = Diagnosing(server)

    def read(path: Path) -> str | None:
        """The text of a file as the editor has it, or as it is stored."""
        uri = uris.from_fs_path(str(path))
        known = server.workspace.text_documents
        if uri in known:
            return known[uri].source
        try:
            return read_contents(path)
        except IngotError:
            return None

    @server.feature(lsp.INITIALIZED)
    def started(_: lsp.InitializedParams) -> None:
        diagnosing.worker.submit(known_types)  # which takes seconds, and is asked for soon

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        diagnosing.schedule(params.text_document.uri, 0.0)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        diagnosing.schedule(params.text_document.uri, DEBOUNCE)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: lsp.DidSaveTextDocumentParams) -> None:
        diagnosing.schedule(params.text_document.uri, 0.0)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: lsp.DidCloseTextDocumentParams) -> None:
        diagnosing.forget(params.text_document.uri)

    @server.feature(
        lsp.TEXT_DOCUMENT_COMPLETION,
        lsp.CompletionOptions(trigger_characters=["[", "=", "'", " ", "{", "/"]),
    )
    def completion(params: lsp.CompletionParams) -> lsp.CompletionList:
        document = server.workspace.get_text_document(params.text_document.uri)
        text, offset = document.source, document.offset_at_position(params.position)
        start = offset
        while start and (text[start - 1].isalnum() or text[start - 1] in "_./~"):
            start -= 1
        place = Place(path_of(document), start, offset)
        items = [
            lsp.CompletionItem(
                label=each.label, kind=KINDS[each.kind], detail=each.detail or None,
                documentation=markdown(each.doc) if each.doc else None,
                sort_text=f"{each.rank}{each.label}",
                filter_text=each.label,
                text_edit=lsp.TextEdit(range_of(place, text, document), each.insert or each.label),
            )
            for each in complete(text, path_of(document), offset, read)
        ]  # fmt: skip
        return lsp.CompletionList(is_incomplete=False, items=items)

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hover(params: lsp.HoverParams) -> lsp.Hover | None:
        document = server.workspace.get_text_document(params.text_document.uri)
        text, offset = document.source, document.offset_at_position(params.position)
        found = describe(text, path_of(document), offset, read)
        if found is None:
            return None
        return lsp.Hover(markdown(found[0]), range_of(found[1], text, document))

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def definition(params: lsp.DefinitionParams) -> lsp.Location | None:
        document = server.workspace.get_text_document(params.text_document.uri)
        offset = document.offset_at_position(params.position)
        found = define(document.source, path_of(document), offset, read)
        if found is None:
            return None
        text = document.source if found.file == path_of(document) else read(found.file) or ""
        return lsp.Location(
            uris.from_fs_path(str(found.file)) or "", range_of(found, text, document)
        )

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def symbols(params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        document = server.workspace.get_text_document(params.text_document.uri)
        top, _ = outline_text(document.source, path_of(document))
        return [symbol(each, document.source, document) for each in top.blocks]

    return server


def path_of(document: TextDocument) -> Path:
    """The path of a document; one that was never stored has only a name."""
    return Path(uris.to_fs_path(document.uri) or document.uri.rpartition("/")[2] or "untitled")


def markdown(text: str) -> lsp.MarkupContent:
    """Text with its markup."""
    return lsp.MarkupContent(lsp.MarkupKind.Markdown, text)


def range_of(place: Place, text: str, document: TextDocument) -> lsp.Range:
    """A place in the units that the editor asked for."""
    source = Source("", text)
    points: list[lsp.Position] = []
    for offset in (place.start, place.end):
        span = source.span(min(offset, len(text)), 1)
        points.append(lsp.Position(span.line - 1, span.column - 1))
    lines = [f"{line}\n" for line in text.split("\n")]
    found = lsp.Range(*points)
    return document.position_codec.range_to_client_units(lines, found)


def diagnostic(found: Finding, text: str, file: Path, document: TextDocument) -> lsp.Diagnostic:
    """A problem at its place; one of another file stands at the line that includes it."""
    problem, span = found.problem, found.problem.span
    message = "\n".join(part for part in (problem.message, problem.fix) if part)
    place = Place(file, 0, 0)
    if span is not None and span.file == file.name and span.line > 0:
        start = Source("", text).starts[min(span.line, text.count("\n") + 1) - 1]
        start += max(span.column - 1, 0)
        place = Place(file, start, start + span.length)
    elif span is not None:
        message = f"{span.file}:{span.line}: {message}"
        includes = outline_text(text, file)[1]
        place = next((at for target, at in includes if span.file.endswith(target)), place)
    return lsp.Diagnostic(
        range=range_of(place, text, document), message=message,
        severity=SEVERITIES[found.severity], code=problem.code, source="ingot",
    )  # fmt: skip


def symbol(block: WrittenBlock, text: str, document: TextDocument) -> lsp.DocumentSymbol:
    """A block and what it holds, for the outline of an editor."""
    section = len(block.path) == 1
    whole = Place(block.whole.file, block.whole.start, max(block.whole.end, block.place.end))
    return lsp.DocumentSymbol(
        name=block.name or "[]", detail=block.type,
        kind=lsp.SymbolKind.Module if section else lsp.SymbolKind.Object,
        range=range_of(whole, text, document),
        selection_range=range_of(block.place, text, document),
        children=[symbol(each, text, document) for each in block.blocks],
    )  # fmt: skip
