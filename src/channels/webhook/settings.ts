import { z } from "zod";
import { commonSettings } from "../../event/channel.ts";
import { inheritPresetVerification, senderSettings } from "../../verify/sender-settings.ts";

export const webhookSettings = z
  .strictObject({ ...commonSettings, ...senderSettings })
  .describe("An external system posts its own format to the channel's address.")
  .overwrite(inheritPresetVerification);
