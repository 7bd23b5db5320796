//! Rust text as words and punctuation, without comments, strings, characters and lifetimes.

/// The identifiers, numbers, `::` and single punctuation marks of `text`, in order.
pub(crate) fn tokens(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(len) = ignored(rest) {
            rest = &rest[len..];
            continue;
        }
        let (token, later) = rest.split_at(token_len(rest));
        found.push(token.strip_prefix("r#").unwrap_or(token));
        rest = later;
    }
    found
}

fn token_len(text: &str) -> usize {
    if text.starts_with("::") {
        return 2;
    }
    let raw = if text.starts_with("r#") { 2 } else { 0 };
    match word_len(&text[raw..]) {
        0 => text.chars().next().map_or(0, char::len_utf8),
        len => raw + len,
    }
}

fn word_len(text: &str) -> usize {
    text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len())
}

/// The length of the white space, comment or literal that `text` begins with.
fn ignored(text: &str) -> Option<usize> {
    let first = text.chars().next()?;
    if first.is_whitespace() {
        return Some(first.len_utf8());
    }
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if text.starts_with("/*") {
        return Some(block_comment(text));
    }
    let marked = text.strip_prefix(['b', 'c']).unwrap_or(text);
    let mark = text.len() - marked.len();
    if let Some(len) = marked.strip_prefix('r').and_then(raw_string) {
        return Some(mark + 1 + len);
    }
    match marked.chars().next()? {
        '"' => Some(mark + string(marked)),
        '\'' => Some(mark + character_or_lifetime(marked)),
        _ => None,
    }
}

fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        match text.as_bytes().get(at..at + 2) {
            Some(b"/*") => (depth, at) = (depth + 1, at + 2),
            Some(b"*/") => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at.min(text.len())
}

/// The length of `#..#"..."#..#`, if `text` begins with it.
fn raw_string(text: &str) -> Option<usize> {
    let hashes = text.len() - text.trim_start_matches('#').len();
    let body = text[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", &text[..hashes]);
    let length = body.find(&end).map_or(body.len(), |at| at + end.len());
    Some(hashes + 1 + length)
}

fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            _ => escaped = c == '\\' && !escaped,
        }
    }
    text.len()
}

fn character_or_lifetime(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    let first = chars.next().map(|(_, c)| c);
    let second = chars.next();
    match (first, second) {
        (Some('\\'), _) => text[3..].find('\'').map_or(text.len(), |at| 3 + at + 1),
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1 + word_len(&text[1..]),
    }
}

#[test]
fn comments_and_literals_leave_nothing() {
    let text = r##"
        // use crate::a; "
        /* use /* nested */ crate::b; */
        let s = "use \"crate::c\"; \\"; let r = r#"crate::"d""#; let b = b"crate::e\\";
        let c = ['\'', '"', '\\', 'x', b'"']; fn f<'a>(x: &'a str, r#type: u8) {} crate::g"##;
    let found = tokens(text).concat();
    let kept = "lets=;letr=;letb=;letc=[,,,,];fnf<>(x:&str,type:u8){}crate::g";
    assert_eq!(found, kept);
}
