import { createHmac, type KeyLike, sign } from "node:crypto";

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");

/** A JSON Web Token in compact form (RFC 7515 section 3.1) under a secret. */
export function hs256(secret: string, claims: unknown): string {
  const signed = `${part({ alg: "HS256", typ: "JWT" })}.${part(claims)}`;
  return `${signed}.${createHmac("sha256", secret).update(signed).digest("base64url")}`;
}

/** The same under an RSA key. */
export function rs256(key: KeyLike, kid: string, claims: unknown): string {
  const signed = `${part({ alg: "RS256", kid, typ: "JWT" })}.${part(claims)}`;
  return `${signed}.${sign("sha256", Buffer.from(signed), key).toString("base64url")}`;
}
