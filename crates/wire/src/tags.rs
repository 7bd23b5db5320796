//! The registry of message tags: every message that crosses the wire has one row here.
//!
//! A tag is the first byte of a frame. Protocols name their messages by these constants, and
//! errors, `docs/reference/wire.md` and the tests read the rows. A message whose number is not
//! in the registry does not compile, because its name is looked up at compile time.

use crate::cost::Role;
use crate::meter::Phase;

/// Who sends a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The client sends it to the server.
    ToServer,
    /// The server sends it to the client.
    ToClient,
    /// Either party sends it.
    Both,
}

impl Direction {
    /// Returns the direction in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::ToServer => "client to server",
            Self::ToClient => "server to client",
            Self::Both => "both",
        }
    }

    /// Returns whether `role` may send such a message.
    pub fn allows(self, role: Role) -> bool {
        match self {
            Self::ToServer => role == Role::Client,
            Self::ToClient => role == Role::Server,
            Self::Both => true,
        }
    }
}

/// A row of the registry.
#[derive(Clone, Copy, Debug)]
pub struct Tag {
    /// The first byte of the message's frames.
    pub number: u8,
    /// The name of the constant.
    pub constant: &'static str,
    /// What errors call the message.
    pub name: &'static str,
    /// Who sends it.
    pub direction: Direction,
    /// The phases in which it is sent, in order; none for a message that no session sends.
    pub phases: &'static [Phase],
    /// What it carries, in a sentence.
    pub carries: &'static str,
}

macro_rules! tags {
    ($($constant:ident = $number:literal, $name:literal, $direction:ident, [$($phase:ident),*],
        $carries:literal;)*) => {
        $(#[doc = $carries] pub const $constant: u8 = $number;)*

        /// Every tag, in the order of the numbers.
        pub const ALL: &[Tag] = &[$(Tag {
            number: $number,
            constant: stringify!($constant),
            name: $name,
            direction: Direction::$direction,
            phases: &[$(Phase::$phase),*],
            carries: $carries,
        }),*];
    };
}

tags! {
    HELLO = 0x01, "hello", Both, [Setup],
        "Each party says its protocol version, its parameters and a nonce.";
    PLAN = 0x02, "plan", ToClient, [Setup],
        "The server offers the public graph, the settings and what it says of its model, as JSON.";
    ACCEPT = 0x03, "accept", ToServer, [Setup],
        "The client names the number of inputs and the digest of its own plan.";
    SESSION_KEYS = 0x04, "keys of a session", ToServer, [Setup],
        "The client sends the bodies of its RLWE public keys, one for each ring degree, and of its keys for unfolding.";
    PROBE = 0x05, "probe", Both, [Setup],
        "The server sends zeros to measure the link, and the client answers each with eight of them.";
    REQUEST = 0x06, "request", ToServer, [Setup],
        "The client names a model, by a hash of its name, shows its token, says whether it keeps keys and which it has kept, and which offer it expects and how much it has sent on for that; zeros stand for none.";
    TESTS = 0x07, "message of the tests", Both, [],
        "Tests of frames send it, and no session does.";
    ADMISSION = 0x08, "admission", ToClient, [Setup],
        "The server admits the client and says whether it measures the link, has the keys kept and goes on as the client expects, tells it its place in the queue, or refuses it and says when to come back.";
    DOOR_REQUEST = 0x09, "request to a door", ToServer, [Setup],
        "Before its opening the client asks the door of a fleet for a server: protocol version, model, token, name of kept keys, and how much it will ask.";
    TICKET = 0x0a, "ticket", ToClient, [Setup],
        "The door of a fleet names a server, and gives the client the ticket that admits it there, once.";
    SHOWN_TICKET = 0x0b, "ticket that is shown", ToServer, [Setup],
        "Before its opening the client shows the ticket that the door of a fleet gave it.";
    FLEET_CHALLENGE = 0x0c, "challenge of a fleet", Both, [],
        "On the control connection of a fleet each party sends a nonce, and no session does.";
    FLEET_PROOF = 0x0d, "proof of a fleet", Both, [],
        "On the control connection of a fleet each party shows that it knows the fleet's secret.";
    FLEET_NEWS = 0x0e, "news of a server", ToServer, [],
        "On the control connection of a fleet a server says what it has and does, or what is to be counted, as JSON.";
    FLEET_ORDER = 0x0f, "order of a door", ToClient, [],
        "On the control connection of a fleet the door answers what a server said, as JSON.";
    TABLE_CHOICES = 0x31, "choices of 1-of-n OTs", Both, [Online],
        "The receiver of oblivious transfers sends its positions, masked by its random choices.";
    TABLE_ENTRIES = 0x32, "entries of 1-of-n OTs", Both, [Online],
        "The sender of oblivious transfers sends its table's entries, each masked by a pad; behind those of a chain of digits stands the key that opens its lowest row.";
    BASE_CHOICES = 0x33, "choices of base OTs", Both, [Setup],
        "The receiver of the base oblivious transfers sends 128 Ristretto points, one for each choice.";
    BASE_OFFER = 0x34, "offer of base OTs", Both, [Setup],
        "The sender of the base oblivious transfers sends one Ristretto point.";
    TREE_SUMS = 0x35, "sums of SoftSpoken's trees", Both, [Setup],
        "The receiver of SoftSpoken's correlations sends the masked sums of all its trees.";
    SOFTSPOKEN_CORRECTIONS = 0x36, "corrections of SoftSpoken", Both, [Setup, Preprocess],
        "The receiver of SoftSpoken's correlations corrects the vectors of all trees but the first, and shows by a hash that the corrections fit.";
    TREE_CHALLENGE = 0x37, "challenge of SoftSpoken's trees", Both, [Setup],
        "The receiver of SoftSpoken's correlations sends the sum of the tags of each tree, and a digest of what it expects in answer.";
    GMW_OPENING = 0x38, "openings of a boolean circuit", Both, [Online],
        "Each party sends its shares of a level's operands, masked by triples.";
    RESULT = 0x39, "share of a result", ToClient, [Online],
        "The server sends its share of the result, which opens it to the client.";
    FERRET_CORRECTIONS = 0x3a, "corrections of Ferret", Both, [Preprocess],
        "The sender of Ferret's correlations sends the blocks of its trees' levels, sums of tags and a digest.";
    TREE_PROOF = 0x3b, "proof of SoftSpoken's trees", Both, [Setup],
        "The sender of SoftSpoken's correlations shows that it knows all leaves but one of each tree.";
    BASE_KEYS = 0x3c, "masked keys of base OTs", Both, [Setup],
        "With `--post-quantum` the receiver of the base oblivious transfers sends 128 masked ML-KEM-768 keys, one for each choice.";
    BASE_CAPSULES = 0x3d, "capsules of base OTs", Both, [Setup],
        "With `--post-quantum` the sender of the base oblivious transfers sends two ML-KEM-768 ciphertexts for each.";
    BENCH_PADS = 0x3e, "pads of a bench", ToClient, [Setup],
        "After the measurement of a bench the server shows both pads of a sample of OTs.";
    COEFFICIENT_INPUTS = 0x41, "inputs of a coefficient-packed layer", ToServer, [Preprocess, Online],
        "The client sends its share of the inputs, encrypted: seed and body of each RLWE ciphertext.";
    COEFFICIENT_RESPONSES = 0x42, "answers of a coefficient-packed layer", ToClient, [Preprocess, Online],
        "The server sends the masked products: c1 and the useful part of c0 of each RLWE ciphertext.";
    COEFFICIENT_MASKED = 0x43, "masked inputs of a coefficient-packed layer", ToServer, [Online],
        "The client sends its share of the inputs less the mask on which the layer was preprocessed.";
    SLOT_INPUTS = 0x45, "inputs of a layer on packed slots", ToServer, [Online],
        "The client sends its share of the inputs, encrypted: seed and body of each BFV ciphertext of GAZELLE, GALA or FALCON.";
    SLOT_RESPONSES = 0x46, "answers of a layer on packed slots", ToClient, [Online],
        "The server sends the masked products: c1 and c0 of each BFV ciphertext, in GAZELLE, GALA and both FALCON protocols alike.";
    SLOT_KEYS = 0x47, "keys for packed slots", ToServer, [Setup],
        "The client sends the bodies of one BFV key: the public key first, then a rotation key in each message.";
    GARBLED_TABLES = 0x48, "garbled tables", ToServer, [Preprocess],
        "The client, who garbles, sends a chunk of garbled tables.";
    GARBLED_CHOICES = 0x49, "choices of a garbled circuit", ToClient, [Preprocess],
        "The server, who evaluates, sends the bits of its masks, masked by its random choices.";
    GARBLED_CORRECTIONS = 0x4a, "corrections of a garbled circuit", ToServer, [Preprocess],
        "The client corrects the pads of oblivious transfers to the labels of the server's mask bits.";
    GARBLED_MASKED = 0x4b, "masked inputs of a garbled circuit", ToClient, [Online],
        "The server sends its share of the inputs less the masks whose labels it holds.";
    GARBLED_LABELS = 0x4c, "labels of a garbled circuit", ToServer, [Online],
        "The client sends the labels of the bits that it enters.";
    SMALL_SHARES = 0x4f, "small shares of a FALCON layer", ToServer, [Online],
        "The client sends its share less a mask of a few bits, which leaks the inputs (suite falcon only).";
    SHARED_INPUTS = 0x50, "inputs of a product of shared matrices", ToServer, [Preprocess, Online],
        "The client sends its shares of the factors, encrypted: seed and body of each RLWE ciphertext.";
    SHARED_RESPONSES = 0x51, "answers of a product of shared matrices", ToClient, [Preprocess, Online],
        "The server sends the masked products: c1 and the useful part of c0 of each RLWE ciphertext.";
    LOLA_KEYS = 0x52, "keys for networks under encryption", ToServer, [Setup],
        "The client sends the bodies of one BFV key: public, for products, or for a rotation.";
    LOLA_REQUEST = 0x53, "request to a network under encryption", ToServer, [Online],
        "The client sends its inputs under one plaintext prime: seed and body of each BFV ciphertext.";
    LOLA_ANSWER = 0x54, "answer of a network under encryption", ToClient, [Online],
        "The server sends the results: c1 and c0 of each BFV ciphertext.";
    LOLA_KEYS_NAME = 0x55, "name of keys for networks under encryption", ToServer, [Setup],
        "The client sends the nonce and the digest of its keys; a digest of zeros stands for fresh ones.";
    LOLA_KEYS_WANTED = 0x56, "wish for keys for networks under encryption", ToClient, [Setup],
        "The server says in one bit whether the client shall send its keys.";
    FLOODED_SHARES = 0x57, "flooded shares", ToClient, [Online],
        "The server sends its share less a mask and a public flood, which leaks the value (no session runs it).";
    OT_MATMUL_CHOICES = 0x58, "choices of a product by OT", ToClient, [Preprocess],
        "The server sends the bits of its weights, masked by its random choices.";
    OT_MATMUL_CORRECTIONS = 0x59, "corrections of a product by OT", ToServer, [Preprocess],
        "The client sends, for each oblivious transfer, its value masked by the difference of the two pads.";
    OT_MATMUL_MASKED = 0x5a, "masked inputs of a product by OT", ToServer, [Online],
        "The client sends its share of the inputs less the mask on which the product was preprocessed.";
    TREE_ROWS = 0x5b, "rows of a walk through trees", ToClient, [Online],
        "The server sends the key and the place of each tree's first test, and two encrypted rows for each test, of which one oblivious transfer opens one.";
    COMMITTED_BITS = 0x5c, "corrections of committed bits", ToServer, [Preprocess, Online],
        "The client commits to bits by its random choices of correlated oblivious transfers.";
    TAG_WORDS = 0x5d, "words of tags", ToClient, [Preprocess, Online],
        "The server sends, for each committed bit, the word that turns its label into its tag.";
    TAGGED_TABLES = 0x5e, "tagged garbled tables", ToClient, [Preprocess, Online],
        "The server, who garbles, sends a chunk of tables whose outputs carry tags.";
    CHECK_SEED = 0x5f, "seed of a check", ToClient, [Online],
        "The server sends the seed of the combinations that are checked.";
    CHECK_OPENING = 0x60, "opening of a check", ToServer, [Online],
        "The client opens masked combinations and commits to their tags.";
    CHECK_TAGS = 0x61, "tags of a check", ToClient, [Online],
        "The server sends the tags that it expects of the combinations.";
    CHECK_NONCE = 0x62, "nonce of a check", ToServer, [Online],
        "The client opens its commitment to the tags.";
    COMMITTED_KEY = 0x63, "key of a committed secret", ToServer, [Preprocess, Online],
        "The client sends the body of the public key of the secret to which it has committed.";
    COMMITTED_KEY_SEED = 0x64, "seed of the key of a committed secret", ToClient, [Preprocess, Online],
        "The server sends the seed of the uniform half of the public key, when the client has committed to the rest of it.";
    RUN_KIND = 0x65, "kind of a run", ToServer, [Online],
        "Before a run of a graph that keeps something for the next, whose result is a label, the client says whether it wants the result (0) or only what is kept (1).";
    SHIFTS = 0x66, "shifts of committed integers", ToServer, [Online],
        "The client sends by how much its shares differ from random integers to which it has committed, the low bits each by itself.";
    GARBLER_LABELS = 0x67, "labels of the server's bits", ToClient, [Online],
        "The server, who has garbled before its bits were known, sends a chunk of the labels of these.";
    MASKED_FACTORS = 0x68, "masked factors of a product", Both, [Online],
        "Each party sends its shares of a left factor and of what was appended to the right one, less the masks whose products were preprocessed.";
}

/// Returns the row of a number.
pub const fn find(number: u8) -> Option<Tag> {
    let mut rest = ALL;
    while let Some((tag, later)) = rest.split_first() {
        if tag.number == number {
            return Some(*tag);
        }
        rest = later;
    }
    None
}

/// Returns what errors call the message with this number.
///
/// # Panics
/// For a number without a row: at compile time where the message's name is a constant.
pub const fn name(number: u8) -> &'static str {
    let tag = find(number);
    assert!(tag.is_some(), "a message whose tag is not in the registry");
    match tag {
        Some(tag) => tag.name,
        None => "",
    }
}

/// Returns what a frame is, and the table of all messages, as the text of `docs/reference/wire.md`.
/// `source` names the file that defines the body of a message.
pub fn markdown(source: impl Fn(&Tag) -> String) -> String {
    let mut text = String::from(FRAMES);
    for tag in ALL {
        let phases: Vec<&str> = tag.phases.iter().map(|phase| phase.name()).collect();
        let phases = if phases.is_empty() { "none".into() } else { phases.join(", ") };
        let Tag { number, constant, name, direction, carries, .. } = tag;
        let (direction, file) = (direction.words(), source(tag));
        text.push_str(&format!(
            "| `{number:#04x}` | {name} | `{constant}` | {direction} | {phases} | {carries} | `{file}` |\n"
        ));
    }
    text
}

const FRAMES: &str = "\
# Messages on the wire

This page is generated from `crates/wire/src/tags.rs`; a test compares the two. To write it anew:
`UPDATE=1 cargo test --release -p tacit-wire --test tags`.

## Frames

Each direction of a connection is a sequence of frames, inside TLS 1.3 unless the parties chose plaintext:

| Bytes | Field | Meaning |
|---|---|---|
| 1 | tag | which message this is |
| 4 | word, little endian | low 28 bits: length of the body in bytes; high 4 bits: number of the frame in its direction, modulo 16 |
| length | body | the message |

The receiver knows from the public plan which message comes next and how long it may be. It refuses another tag, a length outside
the bounds and a number out of turn before it reads the body, and a body that no sender could have encoded after that. Integers are
packed without gaps, lowest bit first; every segment of a body starts on a byte, and padding bits are zero.

## Messages

The names are those that errors use. Phases are those of [phases and cost](../concepts/phases.md).

| Tag | Name | Constant | Direction | Phase | What it carries | Body defined in |
|---|---|---|---|---|---|---|
";
