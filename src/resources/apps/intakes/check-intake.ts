import type { z } from "zod";
import { type CheckedChannel, checkChannel } from "../../../channels/check-channel.ts";
import type { ChannelKind } from "../../../channels/kind.ts";
import type { BlueprintRow } from "../../../data/tables.ts";
import type { StoredRouting } from "../../../event/intake.ts";
import { invalidParameters } from "../../../http/errors.ts";
import type { Finding } from "../../../lib/errors.ts";
import { compileItemsPath, compileRoutes, getRoutePlace } from "../../../normalize/routes.ts";
import { coversPlace, resolveSender, type Sender } from "../../../verify/sender.ts";
import { senderConfigSchema } from "../../../verify/sender-config.ts";
import type { Deps } from "../../kit/deps.ts";
import type { intakeContentSchema } from "./schema.ts";

export type IntakeInput = z.output<typeof intakeContentSchema>;

export interface CheckedIntake {
  readonly routing: StoredRouting;
  readonly content: CheckedChannel;
}

/** Settings of a channel that an intake cannot have. */
const FOREIGN_FIELDS = ["registration", "wakes"] as const;

/**
 * Validates the settings of an intake.
 *
 * @param storedSecrets secrets that new rules for secrets do not reject
 * @throws ApiError 400 with each invalid setting
 */
export async function checkIntake(
  deps: Deps,
  { channels, organizationId }: BlueprintRow,
  { config, ...routing }: IntakeInput,
  storedSecrets: Readonly<Record<string, unknown>>,
): Promise<CheckedIntake> {
  const target = channels.find(({ uid }) => uid === routing.channel);
  const kind = target && deps.channelKinds.get(target.kind);
  if (kind === undefined || !isRoutable(kind)) {
    const uids = channels.filter((one) => isRoutable(deps.channelKinds.get(one.kind))).map(({ uid }) => uid);
    const known = uids.length === 0 ? "it has none" : `it has ${uids.join(", ")}`;
    const message = `must be the uid of a webhook channel of the blueprint (${known})`;
    throw invalidParameters([{ path: "channel", message }]);
  }
  const foreign = FOREIGN_FIELDS.filter((name) => config[name] !== undefined).map((name) => ({
    path: `config.${name}`,
    message: "must not be set on an intake; set it on a channel",
  }));
  if (foreign.length > 0) throw invalidParameters(foreign);
  // Records of deliveries show the data of all installs, so the intake keeps none.
  const unchecked = {
    kind: kind.kind,
    config: { ...config, deliveryRecords: false },
    events: [],
    storedSecrets,
  };
  const checked = await checkChannel(deps, unchecked, organizationId);
  if (!checked.ok) throw invalidParameters(checked.error);
  const sender = resolveSender(
    senderConfigSchema.parse({ ...checked.value.config, ...checked.value.secrets }),
    deps.presets,
  );
  if (!sender.ok) throw new Error("the verification of an intake is invalid although it was checked");
  const findings = [
    ...findUnverified(sender.value),
    ...findWrongItems(checked.value, sender.value),
    ...findUnsignedRoutes(kind, checked.value, routing, sender.value),
  ];
  if (findings.length > 0) throw invalidParameters(findings);
  return { routing: { ...routing, kind: kind.kind }, content: checked.value };
}

const isRoutable = (kind: ChannelKind | undefined): boolean =>
  kind?.addressed === true && kind.profile.readItems === undefined;

function findUnverified({ verification, shadow }: Sender): readonly Finding[] {
  const reason = "because anyone who knows the address could send events to every install";
  if (verification.scheme === "none")
    return [{ path: "config.verification.scheme", message: `must not be none on an intake, ${reason}` }];
  return shadow ? [{ path: "config.shadow", message: `must be false on an intake, ${reason}` }] : [];
}

function findWrongItems({ config }: CheckedChannel, { paths }: Sender): readonly Finding[] {
  const text = (config.itemsPath as string | undefined) ?? paths.itemsPath;
  if (text === undefined || compileItemsPath(config, text).path.kind === "singular") return [];
  const message = `must select one list, such as $.entry, because ${text} would show each install the parts of the body around its items`;
  return [{ path: "config.itemsPath", message }];
}

function findUnsignedRoutes(
  { profile }: ChannelKind,
  { config }: CheckedChannel,
  { routeBy, trustUnsigned }: Pick<StoredRouting, "routeBy" | "trustUnsigned">,
  sender: Sender,
): readonly Finding[] {
  const compiled = compileRoutes(profile, config, routeBy);
  if (!compiled.ok) return compiled.error;
  const { scheme, bindDedupe } = sender.verification as {
    readonly scheme: string;
    readonly bindDedupe?: string;
  };
  if (trustUnsigned) {
    if (bindDedupe === "signedBytes" || scheme === "none") return [];
    const message =
      "needs `config.verification.bindDedupe: signedBytes`, so that Inlet notices the same signed bytes with another route key";
    return [{ path: "trustUnsigned", message }];
  }
  return compiled.value.flatMap((path, index) => {
    if (coversPlace(sender, getRoutePlace(path)) || scheme === "none") return [];
    const message = `reads ${path.text}, which the verification does not sign: use a signed value, or set \`trustUnsigned: true\` to accept that anyone with one delivery can send it to another install`;
    return [{ path: `routeBy[${index}]`, message }];
  });
}
