import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.Statement;
import java.util.Properties;
import org.quartz.Job;
import org.quartz.JobBuilder;
import org.quartz.JobExecutionContext;
import org.quartz.Scheduler;
import org.quartz.TriggerBuilder;
import org.quartz.impl.StdSchedulerFactory;

/**
 * A node of Quartz in a cluster, for the tests of adapters.
 *
 * <p>QuartzWork.java URL setup: makes the tables, and a trigger that is due. QuartzWork.java URL NAME: a node of this name, until it is ended; says
 * "working" when a job has begun.
 */
public class QuartzWork {
    public static class Hang implements Job {
        @Override
        public void execute(JobExecutionContext context) {
            System.out.println("working");
            try {
                Thread.sleep(3_600_000);
            } catch (InterruptedException ended) {
                Thread.currentThread().interrupt();
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        String url = arguments[0];
        boolean isSetup = arguments[1].equals("setup");
        if (isSetup) {
            try (Connection connection = DriverManager.getConnection(url, "postgres", "");
                    Statement statement = connection.createStatement();
                    InputStream tables = Scheduler.class.getResourceAsStream("/org/quartz/impl/jdbcjobstore/tables_postgres.sql")) {
                statement.execute(new String(tables.readAllBytes(), StandardCharsets.UTF_8));
            }
        }
        Properties properties = new Properties();
        properties.put("org.quartz.scheduler.instanceName", "shop");
        properties.put("org.quartz.scheduler.instanceId", arguments[1]);
        properties.put("org.quartz.scheduler.skipUpdateCheck", "true");
        properties.put("org.quartz.threadPool.class", "org.quartz.simpl.SimpleThreadPool");
        properties.put("org.quartz.threadPool.threadCount", "2");
        properties.put("org.quartz.jobStore.class", "org.quartz.impl.jdbcjobstore.JobStoreTX");
        properties.put("org.quartz.jobStore.driverDelegateClass", "org.quartz.impl.jdbcjobstore.PostgreSQLDelegate");
        properties.put("org.quartz.jobStore.isClustered", "true");
        properties.put("org.quartz.jobStore.clusterCheckinInterval", "1000");
        properties.put("org.quartz.jobStore.dataSource", "app");
        properties.put("org.quartz.dataSource.app.driver", "org.postgresql.Driver");
        properties.put("org.quartz.dataSource.app.URL", url);
        properties.put("org.quartz.dataSource.app.user", "postgres");
        properties.put("org.quartz.dataSource.app.password", "");
        Scheduler scheduler = new StdSchedulerFactory(properties).getScheduler();
        if (isSetup) {
            scheduler.scheduleJob(
                    JobBuilder.newJob(Hang.class).withIdentity("Hang").requestRecovery().build(),
                    TriggerBuilder.newTrigger().withIdentity("soon").startNow().build());
            scheduler.shutdown();
        } else {
            scheduler.start();
        }
    }
}
