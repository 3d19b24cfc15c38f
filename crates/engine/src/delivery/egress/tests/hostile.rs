//! URLs that try to lead the hub astray, in every spelling we know.

use proptest::prelude::*;

use super::*;

/// Refused at once by a hub without listed networks. One per line would be six screens long.
#[rustfmt::skip]
const HOSTILE: &[&str] = &[
    // Loopback, as it is and in the short, decimal, hex and octal forms that parsers accept.
    "https://127.0.0.1/", "https://127.0.0.1:8443/x", "https://127.1/", "https://127.0.1/",
    "https://2130706433/", "https://0x7f000001/", "https://0x7F000001/", "https://017700000001/",
    "https://0x7f.0.0.1/", "https://0x7f.1/", "https://0177.0.0.1/", "https://0177.1/",
    "https://0177.0x0.0.01/", "https://00000177.0.0.1/", "https://127.0.0.1./", "https://127.1./",
    "https://127.255.255.254/", "https://127.127.127.127/", "https://2130706434/",
    "https://0x7f.0x0.0x0.0x1/", "https://0x0000007f.1/", "https://127.0x1/", "https://127.65535/",
    "https://127.00.00.01/", "HTTPS://127.0.0.1/", "hTTps://0X7F.1/",
    // The same through percent signs and characters that IDNA folds into digits and dots.
    "https://%31%32%37.0.0.1/", "https://127%2e0%2e0%2e1/", "https://１２７.０.０.１/",
    "https://①②⑦.⓪.⓪.①/", "https://127。0。0。1/", "https://127．0．0．1/", "https://127｡0｡0｡1/",
    "https://𝟏𝟐𝟕.𝟎.𝟎.𝟏/", "https://１２７.1/", "https://0ｘ7f.1/", "https://²¹³⁰⁷⁰⁶⁴³³/",
    // Names of this machine.
    "https://localhost/", "https://LOCALHOST/", "https://LocalHost:443/", "https://localhost./",
    "https://a.localhost/", "https://a.b.localhost./", "https://127.0.0.1.localhost/",
    "https://ｌｏｃａｌｈｏｓｔ/", "https://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/", "https://local%68ost/", "https://loca\u{ad}lhost/",
    "https://localhoſt/", "https://localhost。/", "http://localhost/", "http://app.localhost:3000/",
    // This host, and all hosts.
    "https://0.0.0.0/", "https://0/", "https://00/", "https://0x0/", "https://0.1/",
    "https://0.0.0.1/", "https://0.255.255.255/", "https://0000.0000.0000.0000/",
    "https://255.255.255.255/", "https://4294967295/", "https://0xffffffff/",
    "https://037777777777/", "https://255.255.65535/",
    // Private networks.
    "https://10.0.0.1/", "https://10.255.255.255/", "https://10.1/", "https://167772161/",
    "https://0xa000001/", "https://012.0.0.1/", "https://0xa.1/", "https://10.0.513/",
    "https://172.16.0.1/", "https://172.31.255.255/", "https://172.20.10.2/", "https://2886729729/",
    "https://0xac100001/", "https://0254.16.0.1/", "https://172.1048577/", "https://192.168.0.1/",
    "https://192.168.255.255/", "https://192.168.1/", "https://192.168.257/", "https://3232235777/",
    "https://0xc0a80101/", "https://0300.0250.1.1/", "https://192.0xa80101/",
    // Link-local and the metadata services of clouds.
    "https://169.254.169.254/latest/meta-data/", "https://169.254.0.1/", "https://169.254.255.255/",
    "https://2852039166/", "https://0xa9fea9fe/", "https://0xa9.0xfe.0xa9.0xfe/",
    "https://0251.0376.0251.0376/", "https://169.254.43518/", "https://169.16689662/",
    "https://025177524776/", "https://169.254.170.2/v2/credentials", "https://169.254.169.254./",
    "https://１６９.２５４.１６９.２５４/", "https://100.100.100.200/", "https://192.0.0.192/",
    "https://168.63.129.16/", "https://[fd00:ec2::254]/", "https://[fd20:ce::254]/",
    // Carrier NAT.
    "https://100.64.0.1/", "https://100.127.255.255/", "https://1681915905/", "https://0x64400001/",
    "https://100.64.1/", "https://0144.0100.0.1/",
    // Multicast, reserved, benchmarks, documentation, protocol assignments, relays.
    "https://224.0.0.1/", "https://239.255.255.250/", "https://3758096385/", "https://0xe0000001/",
    "https://0340.0.0.1/", "https://240.0.0.1/", "https://255.255.255.254/", "https://0xf0000001/",
    "https://250.1/", "https://198.18.0.1/", "https://198.19.255.255/", "https://0xc6120001/",
    "https://192.0.2.1/", "https://198.51.100.7/", "https://203.0.113.9/", "https://3405803785/",
    "https://192.0.0.1/", "https://192.0.0.170/", "https://192.88.99.1/",
    // IPv6: this host, loopback, and the long ways to write them.
    "https://[::]/", "https://[::1]/", "https://[::1]:8443/", "https://[0:0:0:0:0:0:0:1]/",
    "https://[0000:0000:0000:0000:0000:0000:0000:0001]/", "https://[0::1]/", "https://[::0.0.0.1]/",
    "https://[0:0::0:0]/", "https://[::0]/", "https://[::00:1]/",
    // IPv4 inside IPv6: mapped, compatible, translated.
    "https://[::ffff:127.0.0.1]/", "https://[::ffff:7f00:1]/", "https://[::FFFF:7F00:0001]/",
    "https://[0:0:0:0:0:ffff:127.0.0.1]/", "https://[::ffff:10.0.0.1]/", "https://[::ffff:a00:1]/",
    "https://[::ffff:169.254.169.254]/", "https://[::ffff:a9fe:a9fe]/", "https://[::ffff:0.0.0.0]/",
    "https://[::ffff:192.168.1.1]/", "https://[::ffff:100.64.0.1]/", "https://[::127.0.0.1]/",
    "https://[::7f00:1]/", "https://[::10.0.0.1]/", "https://[::a9fe:a9fe]/",
    "https://[::ffff:0:127.0.0.1]/", "https://[::ffff:8.8.8.8]/", "https://[::8.8.8.8]/",
    // NAT64, 6to4, Teredo: tunnels to an address nobody checked.
    "https://[64:ff9b::127.0.0.1]/", "https://[64:ff9b::7f00:1]/", "https://[64:ff9b::a00:1]/",
    "https://[64:ff9b::169.254.169.254]/", "https://[64:ff9b::8.8.8.8]/",
    "https://[0064:ff9b:0:0:0:0:7f00:0001]/", "https://[64:ff9b:1::a00:1]/",
    "https://[64:ff9b:1:ffff::10.0.0.1]/", "https://[2002:7f00:1::]/",
    "https://[2002:7f00:0001::1]/", "https://[2002:a00:1::1]/", "https://[2002:a9fe:a9fe::]/",
    "https://[2002:c0a8:101::1]/", "https://[2002:808:808::]/", "https://[2001::1]/",
    "https://[2001:0:4136:e378:8000:63bf:80ff:fffe]/", "https://[2001:0:7f00:1::]/",
    "https://[2001:0000:0a00:0001::80ff:fffe]/",
    // IPv6: link-local, site-local, ULA, multicast, documentation, and unassigned space.
    "https://[fe80::1]/", "https://[FE80::1]/", "https://[febf:ffff::1]/", "https://[fec0::1]/",
    "https://[feff::1]/", "https://[fc00::1]/", "https://[fd12:3456:789a::1]/", "https://[fdff::]/",
    "https://[ff02::1]/", "https://[ff01::1]/", "https://[ff05::2]/", "https://[ff0e::1]/",
    "https://[2001:db8::1]/", "https://[3fff::1]/", "https://[2001:2::1]/", "https://[2001:10::1]/",
    "https://[2001:20::1]/", "https://[100::1]/", "https://[5f00::1]/", "https://[4000::1]/",
    "https://[200::1]/", "https://[e000::1]/", "https://[fe80::1%25eth0]/",
    "https://[fe80::1%eth0]/", "https://[::1%251]/",
    // User names and passwords, real or empty, and hosts that only look like hosts.
    "https://user@agent.example/", "https://user:pass@agent.example/",
    "https://:pass@agent.example/", "https://@agent.example/", "https://:@agent.example/",
    "https://agent.example@127.0.0.1/", "https://127.0.0.1@agent.example/",
    "https://agent.example:443@10.0.0.1/", "https://agent.example%40127.0.0.1/",
    "https://a%40b@agent.example/", "https://a@b@agent.example/",
    // Plain http, to addresses and names alike.
    "http://agent.example/", "http://8.8.8.8/", "http://127.0.0.1/", "http://[::1]/",
    "http://169.254.169.254/", "http://[2606:4700::1111]/", "HTTP://agent.example/",
    // Other schemes.
    "ftp://agent.example/", "file:///etc/passwd", "file://localhost/etc/passwd",
    "gopher://127.0.0.1:6379/_x", "dict://127.0.0.1:11211/", "ldap://127.0.0.1/",
    "ws://agent.example/", "wss://agent.example/", "unix:///var/run/docker.sock",
    "http+unix://%2Fvar%2Frun%2Fdocker.sock/", "data:text/plain,x", "javascript:alert(1)",
    "jar:https://agent.example!/", "blob:https://agent.example/x", "about:blank",
    "view-source:https://agent.example/", "httpss://agent.example/", "https+x://agent.example/",
    // Texts that two parsers read in two ways.
    "https:127.0.0.1/", "https:/127.0.0.1/", "https:///127.0.0.1/", "https:////127.0.0.1/",
    "https:\\\\127.0.0.1\\", "https://agent.example\\@127.0.0.1/",
    "https://127.0.0.1\\@agent.example/", "https://agent.example\\.evil.example/",
    "ht\ntps://agent.example/", "https://agent.exa\tmple/", " https://agent.example/",
    "https://agent.example/ ", "https://agent.example/\r\nHost: x", "https://agent.example/\0",
    "https://agent.example /", "\u{feff}https://agent.example/", "https://agent.example/\u{2028}",
    "https://127.0.0.1\u{3000}/", "https://agent.example\n/", "//agent.example/", "agent.example",
    "/hook", "", "https://", "https:///", "https://?x", "https://#x",
    // Hosts and ports that are none.
    "https://agent.example:0/", "https://agent.example:00000/", "https://8.8.8.8:0/",
    "https://agent.example:65536/", "https://agent.example:-1/", "https://agent.example:80x/",
    "https://[::1/", "https://::1/", "https://[]/", "https://[127.0.0.1]/", "https://[::g]/",
    "https://256.256.256.256/", "https://1.2.3.4.5/", "https://0x100000000/", "https://4294967296/",
    "https://127.0.0.0x/", "https://127.0.0.1.1/", "https://08.0.0.1/", "https://a..b/",
    "https://.a/", "https://./", "https://../", "https://a_b!c/", "https://*.example/",
    "https://{host}/", "https://a%00b/", "https://a%20b/", "https://a%2fb/",
    "https://127.0.0.1%2f.agent.example/", "https://$(x)/", "https://127.0.0.1%00.agent.example/",
    "https://xn--/", "https://a|b/", "https://a<b>/",
];

#[test]
fn every_hostile_url_is_refused() {
    assert!(HOSTILE.len() >= 200);
    let guard = Guard::default();
    let passed: Vec<_> = HOSTILE.iter().filter(|url| guard.check_url(url).is_ok()).collect();
    assert!(passed.is_empty(), "{passed:#?}");
}

#[test]
fn urls_and_names_of_absurd_length_are_refused() {
    let guard = Guard::default();
    let url = |host: &str, path: &str| format!("https://{host}/{path}");
    assert_eq!(
        guard.check_url(&url("agent.example", &"a".repeat(2_048))).err(),
        Some(Blocked::TooLong)
    );
    let long_label = "a".repeat(64);
    let long_name = vec!["abcdefg"; 40].join(".");
    for host in [long_label, long_name] {
        assert_eq!(guard.check_url(&url(&host, "")).err(), Some(Blocked::NotAUrl), "{host}");
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
        ("https://127.1/", Blocked::Address),
        ("https://localhost/", Blocked::Address),
        ("http://127.0.0.1/", Blocked::Address),
        ("http://8.8.8.8/", Blocked::Plain),
        ("http://agent.example/", Blocked::Plain),
        ("ftp://agent.example/", Blocked::Scheme),
        ("https://u@agent.example/", Blocked::UserInfo),
        ("https://agent.example:0/", Blocked::Port),
        ("nonsense", Blocked::NotAUrl),
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
    // Opening all of IPv6 opens no IPv4 address that wears an IPv6 coat.
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
