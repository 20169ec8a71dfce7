import { createHmac, type KeyLike, sign } from "node:crypto";

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");

/** Creates a JSON Web Token in compact form (RFC 7515 section 3.1), signed with a shared secret. */
export function hs256(secret: string, claims: unknown): string {
  const signed = `${encode({ alg: "HS256", typ: "JWT" })}.${encode(claims)}`;
  return `${signed}.${createHmac("sha256", secret).update(signed).digest("base64url")}`;
}

/** Creates a JSON Web Token in compact form, signed with an RSA key. */
export function rs256(key: KeyLike, kid: string, claims: unknown): string {
  const signed = `${encode({ alg: "RS256", kid, typ: "JWT" })}.${encode(claims)}`;
  return `${signed}.${sign("sha256", Buffer.from(signed), key).toString("base64url")}`;
}
