import { z } from "zod";
import { UnavailableError } from "../../lib/errors.ts";
import { defineScheme, refuse, type Verdict, type VerificationScheme, type Verifier } from "../verifier.ts";

/** Several ways to know one sender, any of which will do. @param schemes those that may be joined */
export function createAnyOf(
  schemes: readonly [VerificationScheme, ...VerificationScheme[]],
): VerificationScheme {
  const [first, ...others] = schemes;
  const settings = z
    .strictObject({
      scheme: z
        .literal("anyOf")
        .describe("Any of several ways will do, for senders that have more than one."),
      of: z
        .array(z.discriminatedUnion("scheme", [first.settings, ...others.map((one) => one.settings)]))
        .min(2)
        .max(4)
        .describe(
          "The ways, tried in this order under the same secrets; together they are as strong as the weakest.",
        ),
    })
    .describe("Several ways to know one sender.");
  const schemeOf = (options: { readonly scheme?: unknown }): VerificationScheme => {
    const found = schemes.find(({ scheme }) => scheme === options.scheme);
    if (found === undefined) throw new Error(`there is no scheme ${options.scheme}`);
    return found;
  };
  return defineScheme({
    scheme: "anyOf",
    settings,
    needsSecret: ({ of }) => of.every((options) => schemeOf(options).needsSecret(options)),
    findWrongSecret: ({ of }, secret) => {
      const wrong = of.map((options) => schemeOf(options).findWrongSecret(options, secret));
      return wrong.every((message) => message !== undefined) ? wrong[0] : undefined;
    },
    create({ of }) {
      const verifiers = of.map((options) => schemeOf(options).create(options));
      return {
        fetchesKeys: verifiers.some(({ fetchesKeys }) => fetchesKeys),
        consumedHeaders: verifiers.flatMap(({ consumedHeaders }) => consumedHeaders),
        consumedQuery: verifiers.flatMap(({ consumedQuery }) => consumedQuery),
        consumedBody: verifiers.flatMap(({ consumedBody }) => consumedBody),
        verify: (...args) => tryFrom(verifiers, 0, args, undefined),
      };
    },
  });
}

/** At once as long as all that are tried answer at once. What cannot be told now counts only if no other way says yes. */
function tryFrom(
  verifiers: readonly Verifier[],
  index: number,
  args: Parameters<Verifier["verify"]>,
  unavailable: UnavailableError | undefined,
): Verdict | Promise<Verdict> {
  const verifier = verifiers[index];
  if (verifier === undefined) {
    if (unavailable !== undefined) throw unavailable;
    return refuse("mismatch", "none of the ways to know the sender says that it is");
  }
  const judge = (verdict: Verdict): Verdict | Promise<Verdict> =>
    verdict.ok ? verdict : tryFrom(verifiers, index + 1, args, unavailable);
  const fail = (error: unknown): Verdict | Promise<Verdict> => {
    if (error instanceof UnavailableError) return tryFrom(verifiers, index + 1, args, error);
    throw error;
  };
  let verdict: Verdict | Promise<Verdict>;
  try {
    verdict = verifier.verify(...args);
  } catch (error) {
    return fail(error);
  }
  return verdict instanceof Promise ? verdict.then(judge, fail) : judge(verdict);
}
