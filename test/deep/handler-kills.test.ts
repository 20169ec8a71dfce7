import { describe, it } from "vitest";
import { opened } from "../support/opened.ts";
import { killWhileHandling, killWhileRedriving, openKillSite } from "./handler-kills.ts";

const site = opened(openKillSite);

describe("repeatedly killed gateways", () => {
  it("lose no event and acknowledge none too early while handlers hang, disconnect and respond 500", () =>
    killWhileHandling(site, 5));

  it("leave each redriven item either in quarantine or once on its topic", () => killWhileRedriving(site, 2));
});
