import { describe, it } from "vitest";
import { survivesKills } from "../data/local-postgres-kills.ts";

/** The account that every system has. */
const NOBODY = 65534;
const users = [
  ["as root, by another account", { user: { kind: "other", uid: NOBODY, gid: NOBODY } }],
  ["as an ordinary user", { uid: NOBODY }],
] as const;

describe.runIf(process.getuid?.() === 0)("the gateway's own PostgreSQL", () => {
  it.each(
    users,
  )("%s is taken back after a kill of the gateway, recovers after a kill of all, and stops when told", (_, options) =>
    survivesKills(options));
});
