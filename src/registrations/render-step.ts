import { fillPlaceholders, fillUrl, type PlaceholderValues } from "../lib/fill-placeholders.ts";
import { appendToQuery } from "../lib/url-query.ts";
import type { OutboundRequest } from "../net/outbound.ts";
import type { PresetRegistration, RegistrationStep } from "../verify/preset-registration.ts";

/** Values of the placeholders in the requests of a registration. */
export interface StepValues {
  readonly params: Readonly<Record<string, unknown>>;
  readonly address: string;
  readonly secret?: string | undefined;
  readonly events: readonly string[] | null;
  /** Unique name of the registration. */
  readonly name: string;
  readonly id?: string | undefined;
  readonly kept: Readonly<Record<string, unknown>>;
  readonly nowMs: number;
}

/**
 * Builds a request of a registration.
 *
 * @param baseUrl start of the URL, if the channel does not use the preset's one
 */
export function renderStep(
  registration: Pick<PresetRegistration, "baseUrl" | "headers" | "lifetimeSeconds">,
  step: RegistrationStep,
  values: StepValues,
  baseUrl: string | null | undefined = null,
): OutboundRequest {
  const placeholders = toPlaceholders(values, registration.lifetimeSeconds);
  const fill = (texts: Readonly<Record<string, unknown>>) =>
    Object.entries(fillPlaceholders(texts, placeholders) as object) as [string, unknown][];
  const url = new URL(fillUrl((baseUrl ?? registration.baseUrl) + step.path, placeholders));
  appendToQuery(url, toFields(fill(step.query)));
  const headers = fill({ accept: "application/json", ...registration.headers, ...step.headers });
  const body = renderBody(step, fill);
  return {
    method: step.method,
    url: url.href,
    headers: Object.fromEntries([
      ...headers.map(([name, value]) => [name.toLowerCase(), String(value)] as const),
      ...(body === undefined ? [] : [["content-type", body.type] as const]),
    ]),
    ...(body && { body: body.text }),
  };
}

/** Names of the steps in the order of a registration's life. */
const STEPS = ["list", "create", "check", "update", "renew", "remove"] as const;

/** Builds all requests of a registration, to show them. */
export const renderSteps = (registration: PresetRegistration, values: StepValues, baseUrl: string | null) =>
  STEPS.flatMap((name) => {
    const step = registration[name];
    if (step === undefined || step === "recreate") return [];
    const { method, url, headers, body } = renderStep(registration, step, values, baseUrl);
    return [
      { step: name, method, url, headers: { ...headers }, body: body === undefined ? null : String(body) },
    ];
  });

function renderBody(
  { body, form }: RegistrationStep,
  fill: (texts: Readonly<Record<string, unknown>>) => [string, unknown][],
): { readonly type: string; readonly text: string } | undefined {
  if (form !== undefined) {
    const text = new URLSearchParams(toFields(fill(form))).toString();
    return { type: "application/x-www-form-urlencoded", text };
  }
  if (body === undefined) return undefined;
  return { type: "application/json", text: JSON.stringify(Object.fromEntries(fill(body))) };
}

/** Converts members to fields. A list becomes one field per item. */
const toFields = (members: readonly [string, unknown][]): [string, string][] =>
  members.flatMap(([name, value]) => [value].flat().map((one): [string, string] => [name, String(one)]));

function toPlaceholders(
  { params, kept, nowMs, ...values }: StepValues,
  lifetimeSeconds: number | undefined,
): PlaceholderValues {
  const expiresAtMs = lifetimeSeconds === undefined ? undefined : nowMs + lifetimeSeconds * 1_000;
  const known = new Map<string, unknown>([
    ...Object.entries(values).map(([name, value]) => [name, value ?? undefined] as const),
    ["lifetimeSeconds", lifetimeSeconds],
    ["expiresAtMs", expiresAtMs],
    ["expiresAt", expiresAtMs === undefined ? undefined : new Date(expiresAtMs).toISOString()],
    ...Object.entries(params).map(([name, value]) => [`params.${name}`, value] as const),
    ...Object.entries(kept).map(([name, value]) => [`kept.${name}`, value] as const),
  ]);
  return { has: () => true, get: (name) => known.get(name) };
}
