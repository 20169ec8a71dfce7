import { z } from "zod";
import { commonFields } from "../../event/channel.ts";
import { wakesField } from "../../event/wakes.ts";
import { inheritPresetVerification, senderFields } from "../../verify/sender-config.ts";

export const webhookConfigSchema = z
  .strictObject({ ...commonFields, ...senderFields, wakes: wakesField })
  .describe("An external system posts its own format to the channel's address.")
  .overwrite(inheritPresetVerification);
