import type { ChannelIdentity } from "../../event/channel.ts";
import { isSecretIn } from "../../lib/constant-time.ts";
import { recordAudit } from "../accounts/audit.ts";
import { channelName, operatorOf } from "../accounts/audit-entry.ts";
import { recordChange } from "../changes.ts";
import type { Queryable } from "../database.ts";
import type { Keyring } from "../keyring/keyring.ts";
import { openSecrets, sealSecrets } from "./channel-secrets.ts";

export interface CaptureDeps {
  readonly db: Queryable;
  readonly keyring: Keyring;
  readonly nowMs: () => number;
}

interface StoredSecret {
  readonly value: string;
  readonly name?: string;
}

/** Maximum number of secrets that the channel config allows. */
const MAX_SECRETS = 16;

/**
 * Creates a function that stores the secret that a provider sends during setup, unless the channel already has one. It also
 * activates the channel unless the channel is paused. Later deliveries are verified with the secret.
 *
 * The function returns true if the channel now has this secret, even if an earlier call stored it. A provider may repeat its
 * request after losing the response. If two different secrets arrive at the same time, only one is stored.
 */
export const createCaptureSecret =
  ({ db, keyring, nowMs }: CaptureDeps) =>
  ({ number }: Pick<ChannelIdentity, "number">, secret: string): Promise<boolean> =>
    db.transaction().execute(async (trx) => {
      const row = await trx
        .selectFrom("channels")
        .selectAll()
        .where("number", "=", number)
        .forUpdate()
        .executeTakeFirst();
      if (!row) return false;
      const opened = openSecrets(keyring, row);
      const secrets = (opened.secrets ?? []) as readonly StoredSecret[];
      const known = secrets.filter(({ name }) => name === undefined);
      if (known.length > 0)
        return isSecretIn(
          secret,
          known.map(({ value }) => value),
        );
      if (secrets.length >= MAX_SECRETS) return false;
      const now = nowMs();
      await trx
        .updateTable("channels")
        .set({
          sealedSettings: sealSecrets(keyring, number, {
            ...opened,
            secrets: [...secrets, { value: secret }],
          }),
          state: row.state === "needsSetup" ? "active" : row.state,
          version: row.version + 1,
          updatedAt: new Date(now),
        })
        .where("number", "=", number)
        .execute();
      await recordChange(trx, { kind: "channel", key: String(number) });
      const entry = { action: "update", entity: "channel", id: channelName(row) } as const;
      await recordAudit(trx, operatorOf(row.organizationId), { ...entry, fields: ["config.secrets"] }, now);
      return true;
    });
