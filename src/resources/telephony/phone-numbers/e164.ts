import type { Finding } from "../../../lib/errors.ts";
import { err, ok, type Result } from "../../../lib/result.ts";

/** A country code and a number with up to 15 digits in total (ITU-T E.164, section 6.2.1). */
const E164 = /^\+\d{1,15}$/;

/**
 * Converts a national or international number to E.164. The number must be valid in the numbering plan of the country.
 *
 * Loads the full numbering plans on first use (about 20 ms and 2 MiB), so that gateways without telephony never load them. The smaller set
 * of plans would check only the length of numbers.
 */
export async function toE164(countryCode: string, phoneNumber: string): Promise<Result<string, Finding>> {
  const plans = await import("libphonenumber-js/max");
  if (!plans.isSupportedCountry(countryCode))
    return err({ path: "countryCode", message: "must be a country with phone numbers" });
  const number = plans.parsePhoneNumberFromString(phoneNumber, {
    defaultCountry: countryCode,
    extract: false,
  });
  if (!number || number.ext !== undefined)
    return err({ path: "phoneNumber", message: "must be a phone number without other text" });
  const isOfCountry = number.countryCallingCode === plans.getCountryCallingCode(countryCode);
  // If several countries share a calling code, the parser picks one of them. `isValid` then checks against `country`.
  number.country = countryCode;
  if (!isOfCountry || !number.isValid() || !E164.test(number.number))
    return err({ path: "phoneNumber", message: `must be a valid phone number of ${countryCode}` });
  return ok(number.number);
}
