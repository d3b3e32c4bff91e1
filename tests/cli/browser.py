"""Pages tried in a headless browser, where one is installed."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

__all__ = ["probe"]

WATCH = """<script>
const faults = [];
window.addEventListener("error", event => faults.push(String(event.message)));
console.error = console.warn = (...words) => faults.push(words.join(" "));
</script>"""
TELL = """<script>
function tell(told) {
  document.body.innerHTML = "<pre id=told></pre>";
  document.getElementById("told").textContent = JSON.stringify({ ...told, faults });
}
%s
</script>"""


def probe(page: Path, script: str, folder: Path) -> dict[str, Any]:
    """What a script told in the page by `tell`; no error may have been logged before."""
    browsers = (shutil.which(name) for name in ("chromium", "google-chrome", "chrome"))
    browser = next((found for found in browsers if found), None)
    if browser is None:
        pytest.skip("no chromium is installed, so that the page is not tried in a browser")
    text = page.read_text().replace("<head>", f"<head>{WATCH}", 1)
    tried = folder / "probed.html"
    tried.write_text(text.replace("</body>", TELL % script + "</body>"))
    command = [
        browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
        "--no-first-run", "--disable-background-networking", "--disable-component-update",
        "--disable-sync", "--window-size=900,900", "--virtual-time-budget=5000",
        f"--user-data-dir={folder / 'profile'}", "--dump-dom", tried.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = re.search(r'<pre id="told">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found is not None, done.stdout[-2000:]
    told = json.loads(found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    assert told["faults"] == []
    return told
