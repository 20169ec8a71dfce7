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

/** Verifies the request of a case with the provider's own library. Returns false or throws if the library rejects it. */
type Library = (testCase: Case, secret: string) => unknown;

const header = ({ request }: Case, name: string): string => request.headers[name] ?? "";

const standard: Library = ({ request }, secret) =>
  new StandardWebhook(secret).verify(request.body, { ...request.headers });
const svix: Library = ({ request }, secret) =>
  new SvixWebhook(secret).verify(request.body, { ...request.headers });

const LIBRARIES: Readonly<Record<string, Library>> = {
  github: (testCase, secret) =>
    verifyGithub(secret, testCase.request.body, header(testCase, "x-hub-signature-256")),
  stripe: (testCase, secret) =>
    new Stripe("sk_test").webhooks.constructEvent(
      testCase.request.body,
      header(testCase, "stripe-signature"),
      secret,
    ),
  slack: (testCase, signingSecret) =>
    isValidSlackRequest({
      signingSecret,
      body: testCase.request.body,
      headers: {
        "x-slack-signature": header(testCase, "x-slack-signature"),
        "x-slack-request-timestamp": Number(header(testCase, "x-slack-request-timestamp")),
      },
      nowMilliseconds: Date.parse(testCase.arrivedAt),
    }),
  twilio(testCase, secret) {
    const { hooksUrl = HOOKS_URL, request } = testCase;
    const url = hooksUrl + (request.target ?? TARGET);
    const signature = header(testCase, "x-twilio-signature");
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
  polar: (testCase, secret) => standard(testCase, Buffer.from(secret).toString("base64")),
};

async function accepts(library: Library, testCase: Case): Promise<boolean> {
  const [secret] = testCase.secrets;
  vi.setSystemTime(Date.parse(testCase.arrivedAt));
  try {
    const verdict = await library(testCase, secret?.value ?? "");
    return verdict !== false;
  } catch {
    return false;
  }
}

/** Returns whether the libraries can verify the case. They support one secret, no handshakes and no Ed25519 keys. */
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
  )("are accepted or rejected by Inlet exactly as by the provider's own library: %s", async (preset, library) => {
    const cases = vectors.get(preset)?.cases.filter(isForLibraries) ?? [];
    const verdicts: unknown[] = [];
    for (const testCase of cases) verdicts.push([testCase.name, await accepts(library, testCase)]);
    expect(verdicts).toEqual(cases.map((testCase) => [testCase.name, !("refused" in testCase.expect)]));
    expect(cases.length).toBeGreaterThan(2);
  });
});
