import { createHmac } from "node:crypto";
import { ARRIVED_AT_MS, isVerified, type requestOf, senderOf } from "../support.ts";

export const NOW_SECONDS = ARRIVED_AT_MS / 1_000;
export const hmac = (text: string | Buffer, secret: string | Buffer = "k", algorithm = "sha256") =>
  createHmac(algorithm, secret).update(text).digest();
export const hex = (text: string, secret: string | Buffer = "k"): string =>
  hmac(text, secret).toString("hex");

export const config = (verification: object, ...secrets: string[]) => ({
  verification: { scheme: "hmac", name: "x-sig", ...verification },
  secrets: (secrets.length > 0 ? secrets : ["k"]).map((value) => ({ value })),
});
export const verify = (verification: object, parts: Parameters<typeof requestOf>[0]) =>
  isVerified(senderOf(config(verification)), parts ?? {});
