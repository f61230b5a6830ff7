/* Reads dates and times as the connector's formatters do, on whatever JDK runs it: a line of standard input has a kind, a
tab and a text; a line of standard output the value, or "-" for a text that does not parse. */

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.DateTimeException;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.OffsetTime;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.time.temporal.ChronoUnit;

public class ConnectorTimes {
    public static void main(String[] patterns) throws Exception {
        var moment = DateTimeFormatter.ofPattern(patterns[0]);
        var time = DateTimeFormatter.ofPattern(patterns[1]);
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var output = new StringBuilder();
        for (String line; (line = lines.readLine()) != null; ) {
            var parts = line.split("\t", 2);
            output.append(read(parts[0], parts[1], moment, time)).append('\n');
        }
        System.out.print(output);
    }

    private static String read(String kind, String text, DateTimeFormatter moment, DateTimeFormatter time) {
        try {
            return String.valueOf(switch (kind) {
                case "date" -> LocalDate.parse(text, moment).toEpochDay();
                case "timestamp" -> countMicros(readMoment(text, moment));
                case "local_timestamp" -> countMicros(readMoment(text, moment).toLocalDateTime().atOffset(ZoneOffset.UTC));
                case "time" -> readTime(text, time).withOffsetSameInstant(ZoneOffset.UTC).toLocalTime().toNanoOfDay() / 1000;
                default -> LocalTime.parse(text, time).toNanoOfDay() / 1000;
            });
        } catch (DateTimeException error) {
            return "-";
        }
    }

    private static OffsetDateTime readMoment(String text, DateTimeFormatter formatter) {
        try {
            return ZonedDateTime.parse(text, formatter).toOffsetDateTime();
        } catch (DateTimeException error) {
            return LocalDateTime.parse(text, formatter).atOffset(ZoneOffset.UTC);
        }
    }

    private static OffsetTime readTime(String text, DateTimeFormatter formatter) {
        try {
            return OffsetTime.parse(text, formatter);
        } catch (DateTimeException error) {
            return LocalTime.parse(text, formatter).atOffset(ZoneOffset.UTC);
        }
    }

    private static long countMicros(OffsetDateTime moment) {
        return ChronoUnit.MICROS.between(OffsetDateTime.of(1970, 1, 1, 0, 0, 0, 0, ZoneOffset.UTC), moment);
    }
}
