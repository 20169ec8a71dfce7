import { describe, it } from "vitest";
import { survivesKills } from "../data/local-postgres-kills.ts";

/** The uid of the account `nobody`, which every system has. */
const NOBODY = 65534;
const users = [
  ["as root, by another account", { user: { kind: "other", uid: NOBODY, gid: NOBODY } }],
  ["as an ordinary user", { uid: NOBODY }],
] as const;

describe.runIf(process.getuid?.() === 0)("the embedded PostgreSQL", () => {
  it.each(
    users,
  )("running %s, continues under a new gateway process after a kill of the gateway, recovers after a kill of all processes, and can be stopped", (_, options) =>
    survivesKills(options));
});
