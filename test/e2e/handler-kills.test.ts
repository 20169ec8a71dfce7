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
  it("while handlers hang, cut and refuse loses no event and acknowledges none too early", () =>
    killWhileHandling(site, 1));

  it("during a re-drive leaves each item in quarantine or on its topic, never twice", () =>
    killWhileRedriving(site, 1));
});
