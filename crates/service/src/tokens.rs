//! Tokens by which a server knows its clients: the file with their hashes, and how one is made.

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;
use std::path::Path;

use runtime::Reveal;
use sha2::{Digest, Sha256};
use subtle::{ConditionallySelectable, ConstantTimeEq};
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::identity::{Client, is_token_name};

/// Bytes of a token before it is written in hexadecimal digits.
const BYTES: usize = 32;

/// The tokens that a server accepts.
///
/// A file has one line `NAME:HASH` or `NAME:HASH:KEY=VALUE ...` per token. HASH is the SHA-256 of the
/// token's text in hexadecimal digits, so that the file gives no access to who reads it. The only
/// key is `reveal` with `output`, `label`, `probability` or `bucket`. Empty lines and lines that begin with `#`
/// count for nothing.
#[derive(Debug)]
pub struct Tokens {
    entries: Vec<TokenEntry>,
    mode: u32,
}

/// One token that a server accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenEntry {
    name: String,
    hash: [u8; 32],
    reveal: Option<Reveal>,
}

impl TokenEntry {
    /// Returns the client that shows this token.
    pub fn client(&self) -> Client {
        Client::Token(self.name.clone())
    }

    /// Returns the token's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns what this client learns, or `None` where the server's setting holds.
    pub const fn reveal(&self) -> Option<Reveal> {
        self.reveal
    }
}

impl Tokens {
    /// Reads a file of tokens.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a file that cannot be read, that has no token, and for lines that cannot
    /// be right; it names the line.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let failed =
            |e| Error::misuse(format!("cannot read the tokens in {}: {e}", path.display()));
        let text = std::fs::read_to_string(path).map_err(failed)?;
        let mode = mode(&std::fs::metadata(path).map_err(failed)?);
        let named = |e| Error::misuse(format!("{}, {e}", path.display()));
        let entries = read(&text).map_err(named)?;
        if entries.is_empty() {
            let path = path.display();
            return Err(Error::misuse(format!(
                "{path} has no token; `tacit token NAME` makes one"
            )));
        }
        Ok(Self { entries, mode })
    }

    /// Returns the entry of a token as a client shows it, or `None` for one that is not accepted.
    ///
    /// The time taken does not depend on the entries, nor on which of them it is.
    pub fn identify(&self, token: &[u8]) -> Option<&TokenEntry> {
        let shown: [u8; 32] = Sha256::digest(token).into();
        let mut found = u64::MAX;
        for (index, entry) in (0_u64..).zip(&self.entries) {
            found.conditional_assign(&index, entry.hash.ct_eq(&shown));
        }
        self.entries.get(usize::try_from(found).ok()?)
    }

    /// Returns the accepted tokens in the order of the file.
    pub fn entries(&self) -> &[TokenEntry] {
        &self.entries
    }

    /// Returns whether every user of this machine may read the file. It has only hashes, but says
    /// who the clients are: worth a warning.
    pub const fn readable_by_others(&self) -> bool {
        self.mode & 0o004 != 0
    }

    /// Returns whether others than its owner may write the file, and so give themselves access:
    /// worth a warning.
    pub const fn writable_by_others(&self) -> bool {
        self.mode & 0o022 != 0
    }
}

#[cfg(unix)]
fn mode(metadata: &std::fs::Metadata) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode()
}

#[cfg(not(unix))]
const fn mode(_: &std::fs::Metadata) -> u32 {
    0
}

/// Reads all lines; an error begins with the number of its line.
fn read(text: &str) -> Result<Vec<TokenEntry>, String> {
    let mut entries = Vec::new();
    let (mut names, mut hashes) = (BTreeMap::new(), BTreeMap::new());
    for (line, content) in (1_usize..).zip(text.lines().map(str::trim)) {
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let entry = entry(content).map_err(|why| format!("line {line}: {why}"))?;
        if let Some(first) = names.insert(entry.name.clone(), line) {
            return Err(format!("line {line}: `{}` is in line {first} already", entry.name));
        }
        if let Some(first) = hashes.insert(entry.hash, line) {
            return Err(format!("line {line}: the token is that of line {first}"));
        }
        entries.push(entry);
    }
    Ok(entries)
}

fn entry(line: &str) -> Result<TokenEntry, String> {
    let mut parts = line.splitn(3, ':').map(str::trim);
    let (Some(name), Some(hash)) = (parts.next(), parts.next()) else {
        return Err("a line is NAME:HASH or NAME:HASH:KEY=VALUE ...".into());
    };
    if !is_token_name(name) {
        return Err("a name has 1 to 64 letters, digits, and `.`, `_`, `-`".into());
    }
    // The text is not shown: it may be a token that was put here by mistake.
    let hash = bytes(hash).ok_or("the hash is no SHA-256 in 64 hexadecimal digits")?;
    let mut entry = TokenEntry { name: name.into(), hash, reveal: None };
    for setting in parts.next().unwrap_or_default().split_whitespace() {
        let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
        match key {
            "reveal" if entry.reveal.is_some() => return Err("`reveal` is given twice".into()),
            "reveal" => entry.reveal = Some(reveal(value)?),
            _ => return Err(format!("`{key}` is no setting; there is reveal=WHAT")),
        }
    }
    Ok(entry)
}

fn reveal(value: &str) -> Result<Reveal, String> {
    let quoted = serde_json::Value::String(value.into());
    serde_json::from_value(quoted)
        .map_err(|_| format!("reveal is output, label, probability or bucket, not `{value}`"))
}

/// Reads 32 bytes from hexadecimal digits.
pub(crate) fn bytes(digits: &str) -> Option<[u8; 32]> {
    if digits.len() != 64 || !digits.bytes().all(|c| c.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, index) in bytes.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(digits.get(index..index + 2)?, 16).ok()?;
    }
    Some(bytes)
}

/// Writes bytes as hexadecimal digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// A token that was made now. It exists nowhere else.
pub struct NewToken {
    /// The token, 64 hexadecimal digits, for the client.
    pub token: Zeroizing<String>,
    /// The line for the server's file, which has only its hash.
    pub line: String,
}

impl fmt::Debug for NewToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewToken").field("line", &self.line).finish_non_exhaustive()
    }
}

/// Makes a token of 32 bytes from this machine's random generator for the client `name`, who will
/// learn what `reveal` says, or what the server's setting says where it is `None`.
///
/// # Errors
/// [`Error::Misuse`] for a name that no token can have, [`Error::Random`] if the generator fails.
pub fn generate_token(name: &str, reveal: Option<Reveal>) -> Result<NewToken> {
    if !is_token_name(name) {
        let rule = "a name has 1 to 64 letters, digits, and `.`, `_`, `-`";
        return Err(Error::misuse(format!("`{name}` cannot name a token: {rule}")));
    }
    let mut secret = Zeroizing::new([0; BYTES]);
    getrandom::fill(secret.as_mut()).map_err(|e| Error::Random(e.to_string()))?;
    let token = Zeroizing::new(hexadecimal(secret.as_ref()));
    let mut line = format!("{name}:{}", hexadecimal(&Sha256::digest(token.as_bytes())));
    match reveal {
        None => {}
        Some(Reveal::Output) => line.push_str(":reveal=output"),
        Some(Reveal::Label) => line.push_str(":reveal=label"),
        Some(Reveal::Probability) => line.push_str(":reveal=probability"),
        Some(Reveal::Bucket) => line.push_str(":reveal=bucket"),
    }
    Ok(NewToken { token, line })
}

#[cfg(test)]
mod tests;
