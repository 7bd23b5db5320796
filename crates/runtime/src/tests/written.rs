//! What a server learns of a text that is written token by token: nothing of the prompt nor of
//! what follows it, but how many tokens each has.

use graph::{Model, Rounding};
use wire::Role;

use super::decoder;
use super::distinguish::{SESSIONS, told_apart, views_of};
use crate::plan::Reveal;
use crate::plan::kind::Kind;

/// Quantised inputs of a text.
fn text(model: &Model, tokens: usize, value: f32, seen: impl Fn(usize) -> usize) -> Vec<Vec<i64>> {
    let values = decoder::text(tokens, value, seen);
    let inputs = values.chunks(decoder::INPUT);
    inputs.map(|values| model.graph.quantize_input(values).unwrap()).collect()
}

#[test]
fn a_server_cannot_tell_two_prompts_and_what_follows_apart() {
    let model = decoder::decoder(1, Rounding::Stochastic);
    let kinds = [Kind::States, Kind::States, Kind::Whole, Kind::Whole];
    // One text begins with the session, of the other tokens earlier texts are hidden.
    let texts = [text(&model, 4, -1.0, |at| at), text(&model, 4, 0.75, |_| 1)];
    let clear = texts.each_ref().map(|text| graph::interpret_batch(&model, text).unwrap());
    assert_ne!(clear[0].last(), clear[1].last());
    let mut views = texts.iter().zip(0..).map(|(text, side)| {
        let runs: Vec<_> = kinds.into_iter().zip(text.iter().map(Vec::as_slice)).collect();
        let seeds = side * SESSIONS..(side + 1) * SESSIONS;
        views_of(&model, Reveal::Label, &runs, seeds, Role::Server)
    });
    let (left, right) = (views.next().unwrap(), views.next().unwrap());
    assert_eq!(told_apart(&left, &right), None);
}

/// A prompt of two tokens behind one that fills the pass up, and one of three.
#[test]
fn a_server_cannot_tell_prompts_apart_that_fill_as_many_passes() {
    let model = decoder::decoder(2, Rounding::Stochastic);
    let longer = text(&model, 4, -1.0, |at| at);
    let shorter = text(&model, 3, 0.75, |at| at);
    let texts = [longer, [vec![shorter[0].clone()], shorter].concat()];
    let mut views = texts.iter().zip(2..).map(|(text, side)| {
        let (pass, last) = (text[..3].concat(), &text[3]);
        let runs = [(Kind::StatesPass, pass.as_slice()), (Kind::Whole, last.as_slice())];
        let seeds = side * SESSIONS..(side + 1) * SESSIONS;
        views_of(&model, Reveal::Label, &runs, seeds, Role::Server)
    });
    let (left, right) = (views.next().unwrap(), views.next().unwrap());
    assert_eq!(told_apart(&left, &right), None);
}

/// How many tokens a prompt has is seen.
#[test]
fn a_server_sees_how_long_a_prompt_is() {
    let model = decoder::decoder(1, Rounding::Stochastic);
    let text = text(&model, 3, 0.5, |at| at);
    let mut views = [Kind::States, Kind::Whole].into_iter().map(|second| {
        let kinds = [Kind::States, second, Kind::Whole];
        let runs: Vec<_> = kinds.into_iter().zip(text.iter().map(Vec::as_slice)).collect();
        views_of(&model, Reveal::Label, &runs, 0..1, Role::Server)
    });
    let (left, right) = (views.next().unwrap(), views.next().unwrap());
    assert_eq!(told_apart(&left, &right), Some("lengths, order or tags differ".into()));
}
