//! What the guard decides about a URL before anything is dialled. The long table is in `urls`.

use proptest::prelude::*;

use super::*;

#[test]
fn urls_and_names_of_absurd_length_are_refused() {
    let guard = Guard::default();
    let url = |host: &str, path: &str| format!("https://{host}/{path}");
    assert_eq!(
        guard.check_url(&url("agent.example", &"a".repeat(2_048))).err(),
        Some(TargetError::TooLong)
    );
    // A URL that is short as given may be long when normalised.
    let grows = url("agent.example", &"１".repeat(600));
    assert!(grows.len() < 2_048);
    assert_eq!(guard.check_url(&grows).err(), Some(TargetError::TooLong));
    let long_label = "a".repeat(64);
    let long_name = vec!["abcdefg"; 40].join(".");
    for host in [long_label, long_name] {
        assert_eq!(guard.check_url(&url(&host, "")).err(), Some(TargetError::NotAUrl), "{host}");
    }
}

#[test]
fn ordinary_urls_pass() {
    let guard = Guard::default();
    for url in [
        "https://agent.example",
        "https://agent.example/",
        "HTTPS://Agent.Example/Hook?a=1&b=@#x",
        "https://agent.example:8443/a/b",
        "https://8.8.8.8/",
        "https://[2606:4700::1111]:8443/",
        "https://bücher.example/",
        "https://分析.example/",
        "https://my_agent.example/",
        "https://agent.example./",
        "https://127.0.0.1.nip.example/",
        "https://localhost.example/",
        "https://notlocalhost/",
        "https://agent.example/user@host",
        "https://agent.example/%0d%0a",
        "https://a/",
        "https://1e100.net/",
        "https://134744072/",
    ] {
        assert_eq!(guard.check_url(url).err(), None, "{url}");
    }
}

#[test]
fn refusals_say_what_is_wrong_in_the_callers_terms() {
    let guard = Guard::default();
    for (url, why) in [
        ("https://127.1/", TargetError::PrivateAddress),
        ("https://localhost/", TargetError::PrivateAddress),
        ("http://127.0.0.1/", TargetError::PrivateAddress),
        ("http://8.8.8.8/", TargetError::PlainHttp),
        ("http://agent.example/", TargetError::PlainHttp),
        ("ftp://agent.example/", TargetError::UnsupportedScheme),
        ("https://u@agent.example/", TargetError::UserInfo),
        ("https://agent.example:0/", TargetError::InvalidPort),
        ("nonsense", TargetError::NotAUrl),
    ] {
        assert_eq!(guard.check_url(url).err(), Some(why), "{url}");
    }
}

#[test]
fn a_listed_network_opens_itself_and_nothing_else() {
    let guard = Guard::new(nets(&["127.0.0.0/8", "10.1.0.0/16", "fd00:1::/32"]));
    for url in [
        "http://127.0.0.1:9/",
        "https://127.1/",
        "http://2130706433/",
        "http://[::ffff:127.0.0.1]/",
        "http://localhost:9/",
        "https://a.localhost/",
        "http://10.1.2.3/",
        "https://[fd00:1::5]/",
        "http://agent.internal/",
        "https://8.8.8.8/",
    ] {
        assert_eq!(guard.check_url(url).err(), None, "{url}");
    }
    for url in [
        "http://10.2.0.1/",
        "https://[::1]/",
        "http://8.8.8.8/",
        "https://169.254.169.254/",
        "https://[::ffff:10.2.0.1]/",
        "https://[::127.0.0.1]/",
        "https://[64:ff9b::127.0.0.1]/",
        "https://[2002:7f00:1::]/",
        "http://u@127.0.0.1/",
        "http://127.0.0.1:0/",
        "ftp://127.0.0.1/",
    ] {
        assert!(guard.check_url(url).is_err(), "{url}");
    }
    // Allowing all of IPv6 allows no IPv4 address embedded in an IPv6 one.
    let six = Guard::new(nets(&["::/0"]));
    assert!(six.check_url("https://[::ffff:127.0.0.1]/").is_err());
    assert!(six.check_url("http://[::1]/").is_ok());
}

proptest! {
    #[test]
    fn an_address_is_judged_the_same_in_every_spelling(bits: u32) {
        let ip = std::net::Ipv4Addr::from(bits);
        let [a, b, c, d] = ip.octets();
        let guard = Guard::default();
        let verdict = guard.check_address(ip.into()).err();
        for host in [
            format!("{ip}"), format!("{bits}"), format!("{bits:#x}"), format!("0{bits:o}"),
            format!("{a}.{}", bits & 0xff_ffff), format!("{a}.{b:#x}.{}", bits & 0xffff),
            format!("0{a:o}.{b}.{c:#X}.0{d:o}"), format!("{ip}."),
        ] {
            let url = format!("https://{}/", host.replace("0X", "0x"));
            prop_assert_eq!(guard.check_url(&url).err(), verdict, "{}", url);
        }
    }

    #[test]
    fn no_text_makes_the_guard_panic(text in "(https?://)?\\PC{0,60}") {
        let _ = Guard::default().check_url(&text);
        let _ = Guard::new(nets(&["127.0.0.0/8"])).check_url(&text);
    }
}
