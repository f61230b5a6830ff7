import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Prints the values of all messages that a topic has now, a line each, partition by partition; a null as null. */
public class ReadTopic {
  public static void main(String[] arguments) {
    PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    Map<String, Object> settings = Map.of("bootstrap.servers", arguments[0]);
    StringDeserializer texts = new StringDeserializer();
    try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings, texts, texts)) {
      consumer.partitionsFor(arguments[1]).stream().map(found -> found.partition()).sorted().forEach(number -> {
        TopicPartition partition = new TopicPartition(arguments[1], number);
        consumer.assign(List.of(partition));
        consumer.seekToBeginning(List.of(partition));
        long end = consumer.endOffsets(List.of(partition)).get(partition);
        while (consumer.position(partition) < end) {
          consumer.poll(Duration.ofSeconds(10)).forEach(message -> out.println(message.value()));
        }
      });
    }
    out.flush();
  }
}
