import { findConnection } from "../../data/connections/connections.ts";
import { requirePermission } from "../../http/callers/authorize.ts";
import type { Caller } from "../../http/context.ts";
import { invalidParameters, notFound } from "../../http/errors.ts";
import { createBlockCheck } from "../../net/blocked-address.ts";
import { findRegistration } from "../../registrations/find-registration.ts";
import { renderStep } from "../../registrations/render-step.ts";
import type { PresetRegistration } from "../../verify/preset-registration.ts";
import type { RegistrationConfig } from "../../verify/registration-config.ts";
import type { Deps } from "../kit/deps.ts";

/** Returns the address because of which a URL is not public, whatever the operator allows. */
const findPrivateAddress = createBlockCheck({ allowNetworks: [] });

/**
 * Checks that the registration can use its connection and that the provider can reach the channel's address.
 *
 * @param base path of `registration` in the request
 * @throws ApiError 404 if the connection does not exist; 403 if the caller may not read connections; 400 if a setting is invalid
 */
export async function requireRegistration(
  { db, presets, hooksUrl, outbound }: Pick<Deps, "db" | "presets" | "hooksUrl" | "outbound">,
  caller: Caller,
  config: Readonly<Record<string, unknown>>,
  base = "config.registration",
): Promise<void> {
  if (config.registration === undefined) return;
  const { connectionId, target = "", params, baseUrl } = config.registration as RegistrationConfig;
  const registration = findRegistration(presets, { preset: String(config.preset), target });
  if (registration === undefined) throw new Error(`the config names an unknown target: ${target}`);
  const reject = (field: string, message: string): never => {
    throw invalidParameters([{ path: field === "" ? base : `${base}.${field}`, message }]);
  };
  async function requireFitting(required: PresetRegistration["connection"]) {
    if (required === null && connectionId === undefined) return undefined;
    if (required === null)
      return reject("connectionId", "must not be set, because the provider accepts everyone");
    if (connectionId === undefined) return reject("connectionId", `is required. ${required.hint}`);
    requirePermission(caller, "connections.read");
    const found = await findConnection(db, caller.organizationId, connectionId);
    if (found === undefined) throw notFound("connection");
    if (!required.kinds.some((kind) => kind === found.kind))
      reject(
        "connectionId",
        `must be a connection of the kind ${required.kinds.join(" or ")}, but it is ${found.kind}`,
      );
    return found;
  }

  const connection = await requireFitting(registration.connection);
  const values = { params, address: "", events: [], name: "", kept: {}, nowMs: 0 };
  const { url } = renderStep(registration, registration.create, values, baseUrl);
  const { origin } = new URL(url);
  if (connection !== undefined && !connection.allowedOrigins.includes(origin))
    reject(
      "connectionId",
      `the registration calls ${origin}, which is not one of the connection's allowed origins`,
    );
  if ((await findPrivateAddress(hooksUrl)) === undefined) return;
  const isLocalProvider =
    (await findPrivateAddress(origin)) !== undefined &&
    (await outbound.findBlockedAddress(origin)) === undefined;
  if (!isLocalProvider)
    reject(
      "",
      `the provider cannot reach ${hooksUrl}. Set INLET_HOOKS_URL to a public URL. To try it on your machine, use a tunnel, or \`inlet listen\` with a gateway that is public: see docs/registrations#on-your-machine`,
    );
}
