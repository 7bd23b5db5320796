//! The server as operators run it: who is admitted and when, what each client may ask, and what
//! an operator sees of it. The protocols are in the crates below.
