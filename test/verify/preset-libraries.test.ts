import { verify as verifyGithub } from "@octokit/webhooks-methods";
import { isValidSlackRequest } from "@slack/bolt/dist/receivers/verify-request.js";
import { Webhook as StandardWebhook } from "standardwebhooks";
import Stripe from "stripe";
import { Webhook as SvixWebhook } from "svix";
import twilio from "twilio";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { Case } from "../vectors/verify/makers/kit.ts";
import { readVectors } from "./preset-vectors.ts";
import { HOOKS_URL, TARGET } from "./support.ts";

/** The verdict of a provider's own library on a request under one secret. @throws if it refuses by throwing */
type Library = (one: Case, secret: string) => unknown;

const header = ({ request }: Case, name: string): string => request.headers[name] ?? "";

const standard: Library = ({ request }, secret) =>
  new StandardWebhook(secret).verify(request.body, { ...request.headers });
const svix: Library = ({ request }, secret) =>
  new SvixWebhook(secret).verify(request.body, { ...request.headers });

const LIBRARIES: Readonly<Record<string, Library>> = {
  github: (one, secret) => verifyGithub(secret, one.request.body, header(one, "x-hub-signature-256")),
  stripe: (one, secret) =>
    new Stripe("sk_test").webhooks.constructEvent(one.request.body, header(one, "stripe-signature"), secret),
  slack: (one, signingSecret) =>
    isValidSlackRequest({
      signingSecret,
      body: one.request.body,
      headers: {
        "x-slack-signature": header(one, "x-slack-signature"),
        "x-slack-request-timestamp": Number(header(one, "x-slack-request-timestamp")),
      },
      nowMilliseconds: Date.parse(one.arrivedAt),
    }),
  twilio(one, secret) {
    const { hooksUrl = HOOKS_URL, request } = one;
    const url = hooksUrl + (request.target ?? TARGET);
    const signature = header(one, "x-twilio-signature");
    return url.includes("bodySHA256")
      ? twilio.validateRequestWithBody(secret, signature, url, request.body)
      : twilio.validateRequest(secret, signature, url, Object.fromEntries(new URLSearchParams(request.body)));
  },
  svix,
  clerk: svix,
  resend: svix,
  "standard-webhooks": standard,
  openai: standard,
  replicate: standard,
  loops: standard,
  render: standard,
  brex: standard,
  "incident-io": standard,
  polar: (one, secret) => standard(one, Buffer.from(secret).toString("base64")),
};

async function accepts(library: Library, one: Case): Promise<boolean> {
  const [secret] = one.secrets;
  vi.setSystemTime(Date.parse(one.arrivedAt));
  try {
    const verdict = await library(one, secret?.value ?? "");
    return verdict !== false;
  } catch {
    return false;
  }
}

/** Cases that libraries can judge: one secret, no handshake, and no key of Ed25519. */
const isForLibraries = ({ kind, secrets }: Case): boolean =>
  secrets.length === 1 && kind !== "handshake" && !secrets[0]?.value.startsWith("whpk_");

describe("the test vectors", () => {
  beforeAll(() => {
    vi.useFakeTimers({ toFake: ["Date"] });
  });
  afterAll(() => {
    vi.useRealTimers();
  });

  const vectors = readVectors();
  it.each(
    Object.entries(LIBRARIES),
  )("of the preset %s are accepted and refused by the provider's own library too", async (preset, library) => {
    const cases = vectors.get(preset)?.cases.filter(isForLibraries) ?? [];
    const verdicts: unknown[] = [];
    for (const one of cases) verdicts.push([one.name, await accepts(library, one)]);
    expect(verdicts).toEqual(cases.map((one) => [one.name, !("refused" in one.expect)]));
    expect(cases.length).toBeGreaterThan(2);
  });
});
