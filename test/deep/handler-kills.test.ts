import { describe, it } from "vitest";
import { opened } from "../support/opened.ts";
import { killWhileHandling, killWhileRedriving, openKillSite } from "./handler-kills.ts";

const site = opened(openKillSite);

describe("gateways that are repeatedly killed", () => {
  it("lose no event and acknowledge no event before its handler has accepted it, while handlers hang, disconnect or respond 500", () =>
    killWhileHandling(site, 5));

  it("leave each redriven item either in quarantine or published exactly once", () =>
    killWhileRedriving(site, 2));
});
