import { describe, it } from "vitest";
import { killWhileHandling, openKillSite } from "../support/handler-kills.ts";
import { opened } from "../support/opened.ts";

const site = opened(openKillSite);

// `test/deep/handler-kills.test.ts` kills more often, and in the middle of a re-drive.
describe("a gateway that is killed", () => {
  it("loses no event and acknowledges none too early while handlers hang, cut and refuse", () =>
    killWhileHandling(site, 1));
});
