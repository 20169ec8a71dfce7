import type { Finding } from "../../../lib/errors.ts";
import { err, ok, type Result } from "../../../lib/result.ts";

/** `+` and up to 15 digits, which include the country code (ITU-T E.164, section 6.2.1). */
const E164 = /^\+\d{1,15}$/;

/**
 * Converts a phone number to E.164 and checks it against the numbering plan of the country. Loads the full plans on
 * first use (20 ms, 2 MiB), because the smaller plans check only the length.
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
  // The parser picks one of the countries that share a calling code. Set the expected country for the check by `isValid`.
  number.country = countryCode;
  if (!isOfCountry || !number.isValid() || !E164.test(number.number))
    return err({ path: "phoneNumber", message: `must be a valid phone number of ${countryCode}` });
  return ok(number.number);
}
