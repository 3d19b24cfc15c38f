//! A table of hostile URLs, in every spelling we know.
//!
//! Data only. `onslaught` runs them.

/// Refused by every hub, whichever other networks it allows. One per line would be ten screens
/// long.
#[rustfmt::skip]
pub(super) const HOSTILE: &[&str] = &[
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
    // NAT64, 6to4, Teredo: tunnels to an unchecked address.
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
    // Invalid hosts and ports.
    "https://agent.example:0/", "https://agent.example:00000/", "https://8.8.8.8:0/",
    "https://agent.example:65536/", "https://agent.example:-1/", "https://agent.example:80x/",
    "https://[::1/", "https://::1/", "https://[]/", "https://[127.0.0.1]/", "https://[::g]/",
    "https://256.256.256.256/", "https://1.2.3.4.5/", "https://0x100000000/", "https://4294967296/",
    "https://127.0.0.0x/", "https://127.0.0.1.1/", "https://08.0.0.1/", "https://a..b/",
    "https://.a/", "https://./", "https://../", "https://a_b!c/", "https://*.example/",
    "https://{host}/", "https://a%00b/", "https://a%20b/", "https://a%2fb/",
    "https://127.0.0.1%2f.agent.example/", "https://$(x)/", "https://127.0.0.1%00.agent.example/",
    "https://xn--/", "https://a|b/", "https://a<b>/",
    // Again, with the spellings mixed: signs, paths and ports around the same few targets.
    "https://127.0.0.1?x", "https://127.0.0.1#x", "https://127.1:443?@agent.example",
    "https://127.0.0.1#@agent.example/", "https://0x7f.0x000001/", "https://0177.0.01/",
    "https://0x7f.0x0.0x1/", "https://127.0x0.0.01/", "https://00000000000177.0.0.1/",
    "https://0x00000000007f000001/", "https://0000017700000001/", "https://127.16777215/",
    "https://0x7F.0X0.0X0.0X1/", "https://%30%78%37%66.1/", "https://%32%31%33%30706433/",
    "https://%EF%BC%91%EF%BC%92%EF%BC%97.0.0.1/", "https://127%E3%80%820%E3%80%820%E3%80%821/",
    "https://１２７。０。０。１/", "https://⑴27.0.0.1/", "https://0Ｘ7Ｆ000001/", "https://₁₂₇.₀.₀.₁/",
    "https://127.0.0.1\u{ad}/", "https://127.0\u{200b}.0.1/", "https://127.0.0\u{2060}.1/",
    "https://１６９。２５４。１６９。２５４/", "https://169%2e254%2e169%2e254/", "https://169.254.0xa9fe/",
    "https://0xa9fe.0xa9fe/", "https://169.0xfea9fe/", "https://0xA9FEA9FE./", "https://１0.0.0.1/",
    "https://１９２.１６８.０.１/", "https://192%2E168%2E0%2E1/", "https://0xC0A80001./",
    "https://030052000001/", "https://192.11010049/", "https://0xC0.0xA8.1/", "https://0xac.1048577/",
    "https://025404000001/", "https://172.020.1/", "https://172.31.65535/", "https://012.1/",
    "https://01200000001/", "https://0x0A.0x00.0x00.0x01/", "https://100.0x400001/",
    "https://01440.0.0.1/", "https://014420000001/", "https://0x64.0x64.0x64.0xc8/",
    "https://1684300488/", "https://100.100.100.200./", "https://0xa83f8110/", "https://2822734096/",
    "https://168.0x3f.129.020/", "https://0xc00000c0/", "https://192.0.192/",
    // The edges of every closed IPv4 network.
    "https://0.0.0.0:1/", "https://0.0.0/", "https://0.0/", "https://0x00.0x00/", "https://00.00.00.00/",
    "https://10.0.0.0/", "https://100.64.0.0/", "https://127.0.0.0/", "https://127.255.255.255/",
    "https://169.254.0.0/", "https://172.16.0.0/", "https://192.0.0.0/", "https://192.0.0.255/",
    "https://192.0.2.255/", "https://192.31.196.1/", "https://192.88.99.255/", "https://192.168.0.0/",
    "https://192.175.48.6/", "https://198.18.0.0/", "https://198.51.100.255/", "https://203.0.113.0/",
    "https://224.0.0.0/", "https://239.255.255.255/", "https://232.1.1.1/", "https://233.252.0.1/",
    "https://0xeffffffa/", "https://0357.0377.0377.0372/", "https://240.0.0.0/",
    "https://255.255.255.255./", "https://255.16777215/", "https://0xff.0xff.0xff.0xff/",
    // Names of this machine, again.
    "https://LOCALHOST.:8443/", "https://localhost:65535/", "https://x.LOCALHOST/",
    "https://_.localhost/", "https://169.254.169.254.localhost/", "https://%6c%6f%63%61%6c%68%6f%73%74/",
    "https://LOCAL%48OST./", "https://a%2elocalhost/", "https://a。localhost/", "https://ℒocalhost/",
    "https://ｌocalhost./", "https://loc\u{200b}alhost/", "https://𝓵𝓸𝓬𝓪𝓵𝓱𝓸𝓼𝓽/",
    // IPv6 in its longest, shortest and all-capital forms.
    "https://[0:0:0:0:0:0:0:0]/", "https://[0:0:0:0:0:0:0.0.0.1]/", "https://[::0001]/",
    "https://[0:0:0:0::1]/", "https://[::0:1]/", "https://[0::0:0:1]/", "https://[::0.0.0.0]/",
    "https://[::2]/", "https://[::1]?x", "https://[::1]#x", "https://[0000::1]:65535/",
    "https://[::FFFF:127.0.0.1]/", "https://[0000:0000:0000:0000:0000:FFFF:7F00:0001]/",
    "https://[::ffff:127.255.255.255]/", "https://[::ffff:172.16.0.1]/", "https://[::ffff:ac10:1]/",
    "https://[::ffff:c0a8:101]/", "https://[::ffff:6440:1]/", "https://[::ffff:6464:64c8]/",
    "https://[::ffff:224.0.0.1]/", "https://[::ffff:255.255.255.255]/", "https://[::ffff:198.18.0.1]/",
    "https://[::ffff:192.0.2.1]/", "https://[::ffff:168.63.129.16]/", "https://[::ffff:0:0]/",
    "https://[::ffff:0:7f00:1]/", "https://[::ffff:0:a9fe:a9fe]/", "https://[::fffe:127.0.0.1]/",
    "https://[::192.168.1.1]/", "https://[::169.254.169.254]/", "https://[::ffff]/",
    // Tunnels to every kind of private network, with the IPv4 address in each position it can have.
    "https://[64:ff9b::]/", "https://[64:FF9B::7F00:1]/", "https://[64:ff9b::10.0.0.1]/",
    "https://[64:ff9b::172.16.0.1]/", "https://[64:ff9b::192.168.0.1]/", "https://[64:ff9b::6440:1]/",
    "https://[64:ff9b::a9fe:a9fe]/", "https://[64:ff9b::0.0.0.0]/", "https://[64:ff9b::ffff:ffff]/",
    "https://[64:ff9b::e000:1]/", "https://[64:ff9b::100.100.100.200]/",
    "https://[64:ff9b:1::]/", "https://[64:ff9b:1::7f00:1]/", "https://[64:ff9b:1::127.0.0.1]/",
    "https://[64:ff9b:1::a9fe:a9fe]/", "https://[64:ff9b:1:7f00:0:100::]/",
    "https://[64:ff9b:1:a00:0:100::]/", "https://[64:ff9b:1:a9fe:a9:fe00::]/",
    "https://[64:ff9b:1:ffff:ffff:ffff:ffff:ffff]/", "https://[0064:FF9B:0001::192.168.1.1]/",
    "https://[64:ff9b:2::1]/", "https://[2002::]/", "https://[2002::1]/",
    "https://[2002:0:0::1]/", "https://[2002:ac10:1::1]/", "https://[2002:6440:1::]/",
    "https://[2002:6464:64c8::]/", "https://[2002:e000:1::]/", "https://[2002:ffff:ffff::]/",
    "https://[2002:7F00:0001:0000:0000:0000:0000:0001]/", "https://[2002:a83f:8110::]/",
    "https://[2001:0:a00:1::]/", "https://[2001:0:a9fe:a9fe::]/", "https://[2001:0:0:0::1]/",
    "https://[2001:0:ffff:ffff:ffff:ffff:80ff:fffe]/", "https://[2001:0000:4136:E378:8000:63BF:3F57:FEFE]/",
    "https://[2001:1::1]/", "https://[2001:3::1]/", "https://[2001:4:112::1]/", "https://[2001:1ff::1]/",
    "https://[fe80::5efe:127.0.0.1]/", "https://[fe80::200:5efe:10.0.0.1]/",
    // IPv6 networks of one site, one link or one session, and the other closed ranges.
    "https://[fe80::]/", "https://[fe80:0:0:0:0:0:0:1]/", "https://[FE80::A9FE:A9FE]/",
    "https://[fe90::1]/", "https://[fea0::1]/", "https://[febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff]/",
    "https://[fe80::a9fe:a9fe]:80/", "https://[fec0::]/", "https://[FEC0::1]/", "https://[fed0::1]/",
    "https://[feef::1]/", "https://[feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]/", "https://[fc00::]/",
    "https://[FC00::1]/", "https://[fcff::1]/", "https://[fd00::1]/", "https://[FD00:EC2::254]/",
    "https://[fd00:0ec2:0:0:0:0:0:254]/", "https://[fd00:ec2::23]/", "https://[fd00:42::42]/",
    "https://[fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]/", "https://[fe00::1]/", "https://[ff00::]/",
    "https://[ff02::2]/", "https://[FF02::FB]/", "https://[ff02::1:ff00:1]/", "https://[ff08::1]/",
    "https://[ff12::1]/", "https://[ff32:40:fd00::1]/", "https://[ffff::1]/",
    "https://[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]/", "https://[2001:DB8::1]/",
    "https://[2001:db8:ffff:ffff:ffff:ffff:ffff:ffff]/", "https://[3fff:fff::1]/",
    "https://[100:0:0:1::1]/", "https://[2620:4f:8000::42]/", "https://[1fff::1]/",
    "https://[8000::1]/", "https://[5f00:1::1]/",
    // Zone ids, percent signs and other things that do not belong between brackets.
    "https://[::1%lo]/", "https://[::1%25lo]/", "https://[fe80::1%251]/", "https://[fe80::1%1]/",
    "https://[FE80::1%25en0]:8443/", "https://[fe80::a9fe:a9fe%25eth0]/", "https://[ff02::1%25eth0]/",
    "https://[%3A%3A1]/", "https://%5B%3A%3A1%5D/", "https://[::1].agent.example/", "https://[::1]x/",
    "https://x[::1]/", "https://[[::1]]/", "https://[::1]:/@x:y:z@/", "https://[v1.fe80]/",
    "https://[::１]/", "https://[：：1]/", "https://[1]/", "https://[::ffff:0x7f.0.0.1]/",
    "https://[::ffff:127.1]/", "https://[::ffff:0177.0.0.1]/", "https://[::1:]/",
    // User names again.
    "https://agent.example:x@127.0.0.1:8443/", "https://127.0.0.1:80@agent.example/",
    "https://agent.example@[::1]/", "https://[::1]@agent.example/", "https://@@127.0.0.1/",
    "https://agent.example%2f@127.0.0.1/", "https://agent.example%23@127.0.0.1/",
    "https://agent.example%3f@localhost/", "https://agent.example;@127.0.0.1/",
    "https://agent.example&@127.0.0.1/", "https://agent.example\u{ff20}127.0.0.1/",
    "https://127.0.0.1\u{ff0f}.agent.example/", "https://127.0.0.1\u{ff03}.agent.example/",
    "https://agent.example\u{ff1a}80\u{ff20}127.0.0.1/",
    // Schemes again.
    "https//127.0.0.1/", "https;//127.0.0.1/", "https:://127.0.0.1/", "://127.0.0.1/",
    "url:https://127.0.0.1/", "feed:http://127.0.0.1/", "tftp://127.0.0.1/", "sftp://127.0.0.1/",
    "ssh://127.0.0.1/", "telnet://127.0.0.1/", "smtp://127.0.0.1:25/", "redis://127.0.0.1:6379/",
    "smb://127.0.0.1/", "nfs://127.0.0.1/", "netdoc://127.0.0.1/", "phar://x", "php://filter",
    "s3://bucket/", "ldaps://127.0.0.1/", "imap://127.0.0.1/", "rtsp://127.0.0.1/", "h2c://127.0.0.1/",
    "ｈttps://127.0.0.1/", "https\u{200b}://127.0.0.1/", "%68ttps://127.0.0.1/", "ht%74ps://127.0.0.1/",
    // Invalid ports, in front of a valid target.
    "https://127.0.0.1:0/", "https://[::1]:0/", "https://localhost:0/", "https://127.0.0.1:99999/",
    "https://127.0.0.1:+443/", "https://127.0.0.1:0x1bb/", "https://127.0.0.1:４４３/",
    "https://127.0.0.1:443:443/", "https://127.0.0.1:/", "https://agent.example:443:80/",
];

/// Plain http to public hosts: refused by a hub that allows no network.
pub(super) const PLAIN: &[&str] = &[
    "http://agent.example/",
    "HTTP://agent.example/",
    "http://agent.example:443/",
    "http://8.8.8.8/",
    "http://134744072/",
    "http://[2606:4700::1111]/",
];

/// An address or two of every closed network, for names to resolve to.
#[rustfmt::skip]
pub(super) const CLOSED: &[&str] = &[
    // This machine, under all its addresses.
    "127.0.0.2", "127.255.255.254", "0.0.0.0", "0.0.0.1", "::1", "::", "::ffff:127.0.0.2",
    "::ffff:0.0.0.0", "::127.0.0.1", "::ffff:0:127.0.0.1",
    // Its neighbours.
    "10.0.0.1", "172.16.0.1", "172.31.255.254", "192.168.0.1", "169.254.0.1", "100.64.0.1",
    "fc00::1", "fd12:3456::1", "fe80::1", "febf::1", "fec0::1", "feff::1",
    "::ffff:10.0.0.1", "::ffff:192.168.0.1",
    // Cloud metadata.
    "169.254.169.254", "169.254.170.2", "100.100.100.200", "192.0.0.192", "168.63.129.16",
    "fd00:ec2::254", "fd20:ce::254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe",
    // Tunnels.
    "64:ff9b::7f00:1", "64:ff9b::808:808", "64:ff9b:1::a00:1", "2002:7f00:1::", "2002:808:808::1",
    "2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    // Multicast, broadcast, unspecified and reserved.
    "224.0.0.1", "239.255.255.250", "ff02::1", "ff0e::1", "255.255.255.255", "240.0.0.1",
    "198.18.0.1", "192.0.2.1", "198.51.100.1", "203.0.113.1", "192.0.0.1", "192.88.99.1",
    "192.31.196.1", "192.175.48.1", "2001:db8::1", "3fff::1", "2001:2::1", "2001:10::1",
    "2001:20::1", "2620:4f:8000::1", "100::1", "5f00::1", "4000::1",
];
