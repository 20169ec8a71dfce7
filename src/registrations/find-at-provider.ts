import { readId, readPath, readText, readTimeMs } from "../lib/json/read-path.ts";
import { err, ok, type Result } from "../lib/result.ts";
import type { PresetRegistration, RegistrationStep } from "../verify/preset-registration.ts";
import { unreadableList } from "./failures.ts";
import type { StepFailure, StepResult } from "./provider.ts";

/** A registration as the provider lists it. */
export interface ProviderRegistration {
  readonly id: string;
  readonly address: string;
  readonly expiresAtMs: number | undefined;
  readonly kept: Readonly<Record<string, unknown>>;
}

/** Maximum number of pages of a list. */
const MAX_PAGES = 20;

/**
 * Lists the registrations of the object at the provider.
 *
 * @param send sends a step, or requests the URL of a further page with the headers of the step
 */
export async function listAtProvider(
  list: NonNullable<PresetRegistration["list"]>,
  send: (step: RegistrationStep, url?: string) => Promise<StepResult>,
): Promise<Result<readonly ProviderRegistration[], StepFailure>> {
  const found: ProviderRegistration[] = [];
  let next: Page | undefined = { step: list };
  for (let page = 0; page < MAX_PAGES; page++) {
    const result = await send(next.step, next.url);
    if (!result.ok) return err(result);
    const items = readPath(result.body, list.itemsPath);
    // Without a list, Inlet could create a second registration.
    if (!Array.isArray(items)) return err(unreadableList(list.itemsPath));
    for (const item of items) {
      const id = readId(item, list.idPath);
      const address = readText(item, list.addressPath);
      if (id === undefined || address === undefined) continue;
      const kept = readKept(item, list.keep);
      found.push({ id, address, kept, expiresAtMs: readTimeMs(item, list.expiresPath) });
    }
    next = findNextPage(list, result);
    if (next === undefined) return ok(found);
  }
  return err({
    code: "too_many",
    message: `The provider lists more than ${MAX_PAGES} pages of registrations. Delete those that are no longer used.`,
    isRejected: true,
  });
}

interface Page {
  readonly step: RegistrationStep;
  /** URL that the provider names for the page. By default, it is the URL of the step. */
  readonly url?: string;
}

/** Returns the request for the page that follows the response. `undefined` if there is none. */
function findNextPage(
  list: NonNullable<PresetRegistration["list"]>,
  { body, nextUrl }: Extract<StepResult, { ok: true }>,
): Page | undefined {
  const { next, query } = list;
  if (typeof next === "object") {
    const cursor = readText(body, next.path);
    return cursor === undefined
      ? undefined
      : { step: { ...list, query: { ...query, [next.query]: cursor } } };
  }
  const url = next === "link" ? nextUrl : readText(body, next);
  return url === undefined ? undefined : { step: list, url };
}

export const readKept = (
  body: unknown,
  paths: Readonly<Record<string, string>>,
): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(paths).flatMap(([name, path]) => {
      const value = readPath(body, path);
      return value === undefined || value === null ? [] : [[name, value]];
    }),
  );
