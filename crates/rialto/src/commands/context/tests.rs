use super::*;

fn home() -> (tempfile::TempDir, Home) {
    let directory = tempfile::tempdir().expect("a directory");
    let home = Home::at(&directory.path().join("deep/rialto"));
    (directory, home)
}

fn current(home: &Home, explicit: Option<&str>) -> CliResult<Context> {
    Context::current_in(Some(home.clone()), explicit)
}

#[test]
fn without_any_there_is_one_that_is_made_when_something_is_kept() {
    let (_directory, home) = home();
    let implied = current(&home, None).expect("the default context exists");
    assert_eq!(
        (implied.name(), implied.hub(), implied.is_saved()),
        ("default", DEFAULT_HUB, false)
    );
    assert!(implied.load_key().expect("no error").is_none());
    assert!(!home.path().exists(), "reading creates nothing");
    implied.save_key(&KeyFile::from_key("rk_1")).expect("kept");
    let kept = current(&home, None).expect("kept");
    assert!(kept.is_saved());
    assert_eq!(home.current().expect("readable").as_deref(), Some("default"));
    let me = kept.load_key().expect("no error").expect("a key");
    assert_eq!((me.key.reveal(), me.hub.as_deref()), ("rk_1", Some(DEFAULT_HUB)));
}

#[test]
fn one_is_current_until_another_is_chosen() {
    let (_directory, home) = home();
    for name in ["one", "two"] {
        Context::new(&home, name, &format!("http://{name}"))
            .expect("fine")
            .ensure_dir()
            .expect("made");
    }
    assert_eq!(current(&home, None).expect("implied").name(), "default");
    for name in ["one", "two"] {
        home.set_current_if_none(name).expect("chosen");
    }
    assert_eq!(current(&home, None).expect("one").name(), "one");
    assert_eq!(current(&home, Some("two")).expect("two").hub(), "http://two");
    home.set_current("two").expect("chosen");
    assert_eq!(current(&home, None).expect("two").name(), "two");
    let names: Vec<String> =
        home.contexts().expect("both").iter().map(|one| one.name().to_owned()).collect();
    assert_eq!(names, ["one", "two"]);
    let error = current(&home, Some("three")).expect_err("there is none");
    assert_eq!(error.exit, crate::commands::Exit::NotFound);
    assert!(error.next.is_some_and(|next| next.contains("rialto context add three")));
}

#[test]
fn the_first_key_stays_unless_it_is_replaced_on_purpose() {
    let (_directory, home) = home();
    let context = current(&home, None).expect("the default context exists");
    let first = context.save_key_if_none(&KeyFile::from_key("rk_1")).expect("kept");
    let second = context.save_key_if_none(&KeyFile::from_key("rk_2")).expect("no error");
    assert_eq!((first.key.reveal(), second.key.reveal()), ("rk_1", "rk_1"));
    context.save_key(&KeyFile::from_key("rk_3")).expect("kept");
    assert_eq!(context.load_key().expect("no error").expect("a key").key.reveal(), "rk_3");
}

#[test]
fn a_key_of_another_hub_is_no_key_of_a_context() {
    let (_directory, home) = home();
    let context = Context::new(&home, "one", "http://one").expect("fine");
    let path = context.ensure_dir().expect("made").join("me.key");
    key_file::write_atomically(&path, "rk_1\nhub http://two\n").expect("written");
    assert!(context.load_key().expect_err("it is not for this hub").message.contains("http://two"));
}

#[cfg(unix)]
#[test]
fn everything_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (_directory, home) = home();
    let context = current(&home, None).expect("the default context exists");
    context.save_key(&KeyFile::from_key("rk_1")).expect("kept");
    let agent = context.ensure_agent_dir("shout").expect("made");
    assert_eq!(context.agents().expect("readable"), ["shout"]);
    assert!(context.ensure_agent_dir("../shout").is_err());
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(home.path()), 0o700);
    assert_eq!(mode(&agent), 0o700);
    assert_eq!(mode(&context.key_path().expect("a path")), 0o600);
}
