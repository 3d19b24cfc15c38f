"""Hub and key are found as the ``rialto`` command finds them."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rialto_hub import Hub, KeyFile, UsageError
from rialto_hub._context import DEFAULT_HUB, find_caller, hub_slug, normalize_url

from .kit import BINARY, Answer, HubProcess, Server, clean_environment, variables


def rialto(home: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = clean_environment(RIALTO_HOME=str(home), **more)
    return subprocess.run(
        [BINARY, *words], env=environment, capture_output=True, text=True, check=False, timeout=60
    )


def code_of(call: Any) -> str:
    with pytest.raises(UsageError) as caught:
        call()
    return caught.value.code


def test_an_address_has_one_form() -> None:
    for text, normal in (
        ("http://Hub.example:80/", "http://hub.example"),
        ("HTTPS://hub.example:443", "https://hub.example"),
        ("http://[::1]:7425/", "http://[::1]:7425"),
        (" http://h/a/ ", "http://h/a"),
    ):
        assert normalize_url(text) == normal
    for wrong in ("h:7425", "ftp://h", "http://", "http://a:b@h", "http://h?x", "http://h#x", ""):
        assert code_of(lambda text=wrong: normalize_url(text)) == "invalid", wrong
    assert hub_slug("http://127.0.0.1:7425") == "127-0-0-1-7425"


def test_without_anything_it_is_the_local_hub_without_a_key(home: Path) -> None:
    caller = find_caller(None, None, None, None)
    assert (caller.url, caller.key) == (DEFAULT_HUB, None)
    assert not home.exists()


def test_arguments_come_before_variables_and_those_before_the_context(home: Path) -> None:
    directory = home / "contexts" / "work"
    directory.mkdir(parents=True)
    (directory / "context.toml").write_text('hub = "http://work.example"\n')
    (directory / "me.key").write_text("rk_context\nhub http://work.example\n")
    (home / "current").write_text("work\n")
    key_file = home / "own.key"
    key_file.write_text("rk_file\n")

    def found(*arguments: Any) -> tuple[str, str | None]:
        caller = find_caller(*arguments)
        return caller.url, caller.key

    assert found(None, None, None, None) == ("http://work.example", "rk_context")
    assert found(None, None, key_file, None) == ("http://work.example", "rk_file")
    assert found(None, "rk_given", None, None) == ("http://work.example", "rk_given")
    # A context's key is sent to the context's hub only.
    assert found("http://other.example", None, None, None) == ("http://other.example", None)
    with variables(RIALTO_HUB="http://other.example", RIALTO_KEY="rk_variable"):
        assert found(None, None, None, None) == ("http://other.example", "rk_variable")
        assert found("http://third.example", "rk_given", None, None)[0] == "http://third.example"
    with variables(RIALTO_HUB=" ", RIALTO_KEY=""):
        assert found(None, None, None, None) == ("http://work.example", "rk_context")
    key_file.write_text("rk_file\nagent_id a\nhub http://file.example/\n")
    assert found(None, None, key_file, None) == ("http://file.example", "rk_file")
    assert code_of(lambda: find_caller("http://x.example", None, key_file, None)) == "other_hub"
    with variables(RIALTO_CONTEXT="none"):
        assert code_of(lambda: find_caller(None, None, None, None)) == "unknown_context"
    assert code_of(lambda: find_caller(None, None, None, "../x")) == "unknown_context"
    assert code_of(lambda: find_caller(None, "a", key_file, None)) == "invalid"
    (directory / "me.key").write_text("rk_context\nhub http://elsewhere.example\n")
    assert code_of(lambda: find_caller(None, None, None, None)) == "other_hub"


def test_a_key_that_cannot_be_sent_is_refused_before_it_is(home: Path) -> None:
    for wrong in ("two words", "ключ", "a\nb"):
        assert code_of(lambda key=wrong: Hub(DEFAULT_HUB, key=key)) == "bad_key"
    home.mkdir()
    for text in ("", "two words\n", "\nrk_1\n", "\xff"):
        (home / "a.key").write_bytes(text.encode("latin-1"))
        assert code_of(lambda: Hub(DEFAULT_HUB, key_file=home / "a.key")) == "bad_key"
    assert code_of(lambda: Hub(DEFAULT_HUB, key_file=home / "none.key")) == "bad_key"
    with variables(RIALTO_KEY="b\nad"):
        assert code_of(Hub) == "bad_key"


def test_key_files_are_those_of_the_command(home: Path) -> None:
    keys = KeyFile(
        "ca_1", agent_id="你的agent@chorus", hub="http://127.0.0.1:7425", webhook_secret="whsec_1"
    )
    home.mkdir()
    keys.save(home / "a.key")
    assert KeyFile.load(home / "a.key") == keys
    assert stat.S_IMODE((home / "a.key").stat().st_mode) == 0o600
    assert KeyFile.parse(" ca_1 \r\nfuture things\n\n") == KeyFile("ca_1")
    assert "ca_1" not in repr(keys) and "whsec_1" not in repr(keys)


def test_a_new_caller_is_registered_and_the_command_finds_its_key(
    hub_process: HubProcess, home: Path
) -> None:
    with variables(RIALTO_HUB=hub_process.url, USER="HOST\\al ice"):
        with Hub() as hub:
            job = hub.hire("count_words", {"text": "one two"}, budget="0.10")
            assert job.output == {"words": 2}
            me = hub.me().agent
            assert (me.name, me.owner[:10]) == ("HOSTalice", "HOSTalice-")
        with Hub() as again:
            assert again.me().agent.id == me.id
    directory = home / "contexts" / hub_slug(hub_process.url)
    for path, mode in ((directory, 0o700), (directory / "me.key", 0o600), (home, 0o700)):
        assert stat.S_IMODE(path.stat().st_mode) == mode, path
    shown = rialto(home, "job", "show", job.id, "--json", "--hub", hub_process.url)
    assert json.loads(shown.stdout)["id"] == job.id, shown.stderr


def test_the_key_that_the_command_saved_is_found(hub_process: HubProcess, home: Path) -> None:
    added = rialto(home, "context", "add", "mine", "--hub", hub_process.url)
    assert added.returncode == 0, added.stderr
    used = rialto(home, "context", "use", "mine")
    assert used.returncode == 0, used.stderr
    posted = rialto(
        home, "job", "post", "--skill", "count_words", "--input", '{"text":"a"}',
        "--budget", "0.10", "--wait", "--json",
    )  # fmt: skip
    job = json.loads(posted.stdout)
    with Hub() as hub:
        assert hub.url == hub_process.url
        assert [one.id for one in hub.jobs(state="all")] == [job["id"]]


def test_a_hub_that_was_reset_gets_the_caller_again(tmp_path: Path, home: Path) -> None:
    first = HubProcess(tmp_path / "first")
    with variables(RIALTO_HUB=first.url):
        with Hub() as hub:
            hub.hire("count_words", {"text": "a"}, budget="0.10")
        first.kill()
        first.data = tmp_path / "second"
        first.operator_key = ""
        first.start()
        with Hub() as hub:
            assert hub.hire("count_words", {"text": "a"}, budget="0.10").output == {"words": 1}
    first.kill()
    directory = home / "contexts" / hub_slug(first.url)
    assert len(list(directory.glob("me-until-*.key"))) == 1


def test_a_revoked_key_is_not_replaced(hub_process: HubProcess, home: Path) -> None:
    with variables(RIALTO_HUB=hub_process.url), Hub() as hub:
        hub.open_job("count_words", {"text": "a"}, budget="0.10")
        hub.revoke_keys()
        with pytest.raises(Exception, match="missing or invalid key"):
            hub.open_job("count_words", {"text": "a"}, budget="0.10")
    directory = home / "contexts" / hub_slug(hub_process.url)
    assert list(directory.glob("me-until-*")) == []


def test_a_key_that_could_not_be_saved_is_not_asked_for(tmp_path: Path) -> None:
    with Server(lambda *_: Answer()) as server, variables(RIALTO_HOME=str(tmp_path / "f" / "g")):
        (tmp_path / "f").write_text("a file")
        with pytest.raises(UsageError, match="Not a directory"):
            Hub(server.url)
        with (
            variables(RIALTO_HOME=None, HOME=None, XDG_CONFIG_HOME="relative"),
            Hub(server.url) as hub,
            pytest.raises(UsageError, match="no home directory"),
        ):
            hub.open_job("a", budget=0)
        with variables(RIALTO_HOME="/proc/none"), Hub(server.url) as hub, pytest.raises(UsageError):
            hub.open_job("a", budget=0)
        assert server.heard == []


def test_the_home_directory_is_that_of_the_command(tmp_path: Path) -> None:
    for variable, below in (("XDG_CONFIG_HOME", "rialto"), ("HOME", ".config/rialto")):
        directory = tmp_path / variable / below / "contexts" / "default"
        directory.mkdir(parents=True)
        (directory / "context.toml").write_text(f"hub = 'http://{variable.lower()}.example'\n")
    names = {"RIALTO_HOME": None, "XDG_CONFIG_HOME": None, "HOME": str(tmp_path / "HOME")}
    with variables(**names):
        assert find_caller(None, None, None, None).url == "http://home.example"
        os.environ["XDG_CONFIG_HOME"] = str(tmp_path / "XDG_CONFIG_HOME")
        # Underscores are no part of a host.
        assert find_caller(None, None, None, None).url == "http://xdg_config_home.example"
