import { createHmac } from "node:crypto";
import { expect } from "vitest";
import type { HookRequest } from "../support/hook-server.ts";

export const hmac = (secret: string, text: string, algorithm = "sha256") =>
  createHmac(algorithm, secret).update(text).digest();
export const json = (value: unknown): string => JSON.stringify(value);
export const secrets = [{ value: "s3cret" }, { value: "my verify token", name: "verifyToken" }];
export const bySignature = { scheme: "hmac", name: "x-sig" };
export const signed = (body: string, headers: Record<string, string> = {}): HookRequest => ({
  body,
  headers: { "x-sig": hmac("s3cret", body).toString("hex"), ...headers },
});
export const published = { status: 200, text: expect.stringContaining('"published":1') };

/** Handshakes as documented by the providers. */
export const slack = {
  title: "URL verification",
  when: { method: "POST", all: [{ in: "body", name: "$.type", equals: "url_verification" }] },
  respond: { body: "{{body:$.challenge}}" },
};
export const meta = {
  title: "Verification request",
  when: {
    method: "GET",
    all: [
      { in: "query", name: "hub.mode", equals: "subscribe" },
      { in: "query", name: "hub.verify_token", equalsSecret: "verifyToken" },
    ],
  },
  requireVerified: false,
  respond: { body: "{{query:hub.challenge}}" },
};
export const crc = {
  title: "CRC",
  when: { method: "GET", all: [{ in: "query", name: "crc_token" }] },
  requireVerified: false,
  respond: {
    contentType: "application/json",
    body: '{"response_token":"sha256={{query:crc_token | hmac-sha256 | base64}}"}',
  },
};
