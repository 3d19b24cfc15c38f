//! Redirects to other addresses.

/// Every redirect status.
const STATUSES: [u16; 7] = [300, 301, 302, 303, 305, 307, 308];

/// The targets.
#[rustfmt::skip]
const PLACES: &[&str] = &[
    "http://127.0.0.1/", "http://127.0.0.1:8080/", "https://127.0.0.1/", "http://[::1]/",
    "http://localhost/", "http://0.0.0.0/", "http://10.0.0.1/", "http://172.16.0.1/",
    "http://192.168.0.1/", "http://169.254.169.254/latest/meta-data/", "//169.254.169.254/",
    "http://100.64.0.1/", "http://[fd00::1]/", "http://[64:ff9b::a00:1]/", "http://[2002:7f00:1::]/",
    "http://2130706433/", "http://[::ffff:10.0.0.1]/", "https://10.0.0.1/", "http://198.18.0.1/",
    // Allowed addresses are not followed either: the recipient has to register its endpoint.
    "https://8.8.8.8/", "http://9.9.9.9:8080/",
];

/// Paths that answer with redirects: one for each status and target.
pub fn paths() -> Vec<String> {
    let places = 0..PLACES.len();
    let both = STATUSES.iter().flat_map(|status| places.clone().map(move |at| (status, at)));
    both.map(|(status, at)| format!("/{status}/{at}")).collect()
}

/// The response of a path: its redirect, or a plain one.
pub fn answer_to(path: &str) -> String {
    let mut parts = path.split('/').skip(1);
    let status = parts.next().and_then(|status| status.parse::<u16>().ok());
    let place = parts.next().and_then(|at| PLACES.get(at.parse::<usize>().ok()?));
    let (status, place) = match (status, place) {
        (Some(status), Some(place)) => (status, *place),
        _ => return "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}".into(),
    };
    format!(
        "HTTP/1.1 {status} Elsewhere\r\nlocation: {place}\r\nrefresh: 0; url={place}\r\n\
         content-location: {place}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
    )
}
