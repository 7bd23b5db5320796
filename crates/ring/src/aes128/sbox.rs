//! The S-box of AES as a circuit: Boyar and Peralta, "A small depth-16 circuit for the AES S-box", SEC 2012,
//! with the names of their figures. Its four negations are left out.

use super::bitsliced::Word;

/// The S-box of each byte, less its constant. Vector b has the bits number b.
#[inline(always)]
pub(super) fn substituted<W: Word>([x7, x6, x5, x4, x3, x2, x1, x0]: [W; 8]) -> [W; 8] {
    let y14 = x3.xor(x5);
    let y13 = x0.xor(x6);
    let y9 = x0.xor(x3);
    let y8 = x0.xor(x5);
    let t0 = x1.xor(x2);
    let y1 = t0.xor(x7);
    let y4 = y1.xor(x3);
    let y12 = y13.xor(y14);
    let y2 = y1.xor(x0);
    let y5 = y1.xor(x6);
    let y3 = y5.xor(y8);
    let t1 = x4.xor(y12);
    let y15 = t1.xor(x5);
    let y20 = t1.xor(x1);
    let y6 = y15.xor(x7);
    let y10 = y15.xor(t0);
    let y11 = y20.xor(y9);
    let y7 = x7.xor(y11);
    let y17 = y10.xor(y11);
    let y19 = y10.xor(y8);
    let y16 = t0.xor(y11);
    let y21 = y13.xor(y16);
    let y18 = x0.xor(y16);

    let t2 = y12.and(y15);
    let t4 = y3.and(y6).xor(t2);
    let t6 = y4.and(x7).xor(t2);
    let t7 = y13.and(y16);
    let t9 = y5.and(y1).xor(t7);
    let t11 = y2.and(y7).xor(t7);
    let t12 = y9.and(y11);
    let t14 = y14.and(y17).xor(t12);
    let t16 = y8.and(y10).xor(t12);
    let t21 = t4.xor(t14).xor(y20);
    let t22 = t6.xor(t16).xor(y19);
    let t23 = t9.xor(t14).xor(y21);
    let t24 = t11.xor(t16).xor(y18);

    let t25 = t21.xor(t22);
    let t26 = t21.and(t23);
    let t27 = t24.xor(t26);
    let t29 = t25.and(t27).xor(t22);
    let t30 = t23.xor(t24);
    let t31 = t22.xor(t26);
    let t33 = t31.and(t30).xor(t24);
    let t34 = t23.xor(t33);
    let t36 = t24.and(t27.xor(t33));
    let t37 = t36.xor(t34);
    let t38 = t27.xor(t36);
    let t40 = t25.xor(t29.and(t38));
    let t41 = t40.xor(t37);
    let t42 = t29.xor(t33);
    let t43 = t29.xor(t40);
    let t44 = t33.xor(t37);
    let t45 = t42.xor(t41);

    let z0 = t44.and(y15);
    let z1 = t37.and(y6);
    let z2 = t33.and(x7);
    let z3 = t43.and(y16);
    let z4 = t40.and(y1);
    let z5 = t29.and(y7);
    let z6 = t42.and(y11);
    let z7 = t45.and(y17);
    let z8 = t41.and(y10);
    let z9 = t44.and(y12);
    let z10 = t37.and(y3);
    let z11 = t33.and(y4);
    let z12 = t43.and(y13);
    let z13 = t40.and(y5);
    let z14 = t29.and(y2);
    let z15 = t42.and(y9);
    let z16 = t45.and(y14);
    let z17 = t41.and(y8);

    let t46 = z15.xor(z16);
    let t48 = z5.xor(z13);
    let t53 = z0.xor(z3);
    let t57 = z2.xor(z12).xor(t53);
    let t58 = z4.xor(t46);
    let t59 = z3.xor(z6.xor(z7));
    let t60 = t46.xor(t57);
    let t62 = z7.xor(z8).xor(t58);
    let t63 = z9.xor(z10).xor(t58);
    let t64 = z4.xor(t59);
    let t65 = z14.xor(t57).xor(t62);
    let t66 = z1.xor(t63);
    let s0 = t59.xor(t63);
    let s6 = z12.xor(t48).xor(t62);
    let s7 = t48.xor(t60);
    let s3 = t53.xor(t66);
    let s4 = z2.xor(z5).xor(t66);
    let s5 = z10.xor(z11).xor(t65);
    let s1 = t64.xor(s3);
    let s2 = z16.xor(z17).xor(t64.xor(t65));
    [s7, s6, s5, s4, s3, s2, s1, s0]
}
