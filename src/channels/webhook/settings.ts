import { z } from "zod";
import { commonSettings } from "../../event/channel.ts";
import { verificationSettings } from "../../verify/schemes.ts";

/** The whole `config` of a webhook channel. */
export const webhookSettings = z
  .strictObject({ ...commonSettings, ...verificationSettings })
  .describe("An external system posts its own format to the channel's address.");
