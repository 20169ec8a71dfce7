import { afterAll, beforeAll, describe, it } from "vitest";
import {
  type KillSite,
  killWhileHandling,
  killWhileRedriving,
  openKillSite,
} from "../support/handler-kills.ts";

let site: KillSite;
beforeAll(async () => {
  site = await openKillSite();
});
afterAll(() => site?.[Symbol.asyncDispose]());

describe("a gateway that is killed", () => {
  it("loses no event and acknowledges none too early while handlers hang, cut and refuse", () =>
    killWhileHandling(site, 1));

  it("leaves each item of a re-drive in quarantine or on its topic, never twice", () =>
    killWhileRedriving(site, 1));
});
